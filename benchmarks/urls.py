"""The product's addresses, and an empty page of the same stack."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from overview.urls import urlpatterns as product
from workspaces.access import workspace_for


def empty(request: HttpRequest, slug: str) -> HttpResponse:
    """The shell with nothing inside: session, membership, navigation."""
    workspace_for(request, slug)
    return render(request, "base.html")


urlpatterns = [*product, path("w/<slug:slug>/empty/", empty)]
