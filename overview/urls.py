"""Every address of the site. The public ones are listed in docs/operations.md."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from overview import views

overview_patterns = (
    [
        path("", views.overview, name="overview"),
        path("panel/", views.panel, name="panel"),
        path("attention.json", views.attention, name="attention"),
        path("app/<path:route>", views.app, name="app"),
    ],
    "overview",
)

urlpatterns = [
    path("", views.home, name="home"),
    path("w/<slug:slug>/", include(overview_patterns)),
    path("w/<slug:slug>/connectors/", include("connectors.urls")),
    path("", include("workspaces.urls")),
    path("admin/", admin.site.urls),
]
