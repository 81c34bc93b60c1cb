"""Every address of the site. The public ones are listed in docs/operations.md."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from connectors import urls as connectors_urls
from overview import connector_pages, views
from overview.operators import views as operators

overview_patterns = (
    [
        path("", views.overview, name="overview"),
        path("panel/", views.panel, name="panel"),
        path("attention.json", views.attention, name="attention"),
        path("app/<path:route>", views.app, name="app"),
    ],
    "overview",
)

# The two pages of connectors that show facets live here: connectors know nothing of the overview.
connectors_in_workspace = [
    path("connectors/", connector_pages.connectors, name="list"),
    *connectors_urls.urlpatterns,
    path("connectors/<slug:connector>/", connector_pages.connector, name="detail"),
]
connectors_patterns: tuple[list[URLPattern | URLResolver], str] = (
    [path("w/<slug:slug>/", include(connectors_in_workspace)), *connectors_urls.site_patterns],
    connectors_urls.app_name,
)

operators_patterns = ([path("connectors/", operators.connectors, name="connectors")], "operators")

urlpatterns = [
    path("", views.home, name="home"),
    path("operators/", include(operators_patterns)),
    path("w/<slug:slug>/", include(overview_patterns)),
    path("", include(connectors_patterns)),
    path("", include("workspaces.urls")),
    path("admin/", admin.site.urls),
]

handler403 = "workspaces.views.forbidden"
handler500 = "workspaces.views.server_error"
