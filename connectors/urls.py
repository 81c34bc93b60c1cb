"""The addresses of connectors, below a workspace's. `overview/urls.py` adds those of the two
pages that show facets: `connectors:list` and `connectors:detail`."""

from __future__ import annotations

from django.urls import path

from connectors.views import acts, sign_in
from connectors.views.add import add
from connectors.views.configure import configure
from connectors.views.remove import remove

app_name = "connectors"

# Before the pages of single connectors: no connector has the slug "add".
urlpatterns = [
    path("connectors/add/", add, name="add"),
    path("connectors/<slug:connector>/connect/", acts.connect, name="connect"),
    path("connectors/<slug:connector>/reconnect/", acts.reconnect, name="reconnect"),
    path("connectors/<slug:connector>/disconnect/", acts.disconnect, name="disconnect"),
    path("connectors/<slug:connector>/cancel/", acts.cancel, name="cancel"),
    path("connectors/<slug:connector>/check/", acts.check, name="check"),
    path("connectors/<slug:connector>/configure/", configure, name="configure"),
    path("connectors/<slug:connector>/remove/", remove, name="remove"),
    path("connectors/<slug:connector>/sign-in/", sign_in.begin, name="sign_in"),
]

# Of no workspace: authorization servers know one address of this site to send people back to.
site_patterns = [
    path("oauth/callback/", sign_in.callback, name="oauth_callback"),
    path("oauth/client-metadata.json", sign_in.client_metadata, name="oauth_client"),
]
