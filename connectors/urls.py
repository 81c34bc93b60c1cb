"""The addresses of connectors, below a workspace's. `overview/urls.py` adds those of the two
pages that show facets: `connectors:list` and `connectors:detail`."""

from __future__ import annotations

from django.urls import path

from connectors.status import Action
from connectors.views import acts, personal, sign_in
from connectors.views.add import add
from connectors.views.configure import configure
from connectors.views.diagnosis import diagnosis, personal_diagnosis
from connectors.views.overlaps import overlaps
from connectors.views.remove import remove
from connectors.views.tools import tool, tools
from connectors.views.traces import newer, trace, traces

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
    path("connectors/<slug:connector>/diagnosis/", diagnosis, name="diagnosis"),
    path("connectors/<slug:connector>/remove/", remove, name="remove"),
    path("connectors/<slug:connector>/sign-in/", sign_in.begin, name="sign_in"),
    path("overlaps/", overlaps, name="overlaps"),
    path("tools/", tools, name="tools"),
    # A tool's name is a server's text, so it stands in the query: `?name=`.
    path("tools/call/", tool, name="tool"),
    path("traces/", traces, name="traces"),
    path("traces/newer/", newer, name="newer"),
    path("traces/<uuid:trace>/", trace, name="trace"),
]

# Of no workspace: people's own connectors, and the one address of this site that authorization
# servers know to send people back to.
site_patterns = [
    path("account/connectors/", personal.personal, name="personal"),
    path("account/connectors/add/", personal.add, name="personal_add"),
    path("account/connectors/<slug:connector>/", personal.configure, name="personal_configure"),
    path(
        "account/connectors/<slug:connector>/sign-in/",
        sign_in.begin_personal,
        name="personal_sign_in",
    ),
    path(
        "account/connectors/<slug:connector>/diagnosis/",
        personal_diagnosis,
        name="personal_diagnosis",
    ),
    path("account/connectors/<slug:connector>/remove/", personal.remove, name="personal_remove"),
    *(
        path(
            f"account/connectors/<slug:connector>/{action}/",
            personal.act,
            {"action": action},
            name=f"personal_{action}",
        )
        for action in (
            Action.CONNECT,
            Action.RECONNECT,
            Action.DISCONNECT,
            Action.CANCEL,
            Action.CHECK,
        )
    ),
    path("oauth/callback/", sign_in.callback, name="oauth_callback"),
    path("oauth/client-metadata.json", sign_in.client_metadata, name="oauth_client"),
]
