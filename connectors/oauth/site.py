"""What this host is to authorization servers: where people come back, and how it is described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

CLIENT_NAME = "Workspace overview"


@dataclass(frozen=True, slots=True)
class Site:
    """base: the scheme and host that browsers know this site by, without a slash behind them."""

    base: str

    @property
    def redirect_uri(self) -> str:
        return self.base + reverse("connectors:oauth_callback")

    @property
    def document_url(self) -> str | None:
        """The client id for servers that take a document; None where they could not fetch it."""
        # What a request says of itself is no public address: only the operator knows one.
        if not settings.SITE_URL.startswith("https://"):
            return None
        return self.base + reverse("connectors:oauth_client")

    @property
    def metadata(self) -> dict[str, Any]:
        """This host as a client (RFC 7591), the same for every workspace."""
        is_local = urlsplit(self.base).hostname in ("localhost", "127.0.0.1", "::1")
        return {
            "client_name": CLIENT_NAME,
            "client_uri": self.base,
            "redirect_uris": [self.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            # To this machine only native clients may redirect: OpenID Connect Registration 1.0,
            # section 2.
            "application_type": "native" if is_local else "web",
        }


def site_of(request: HttpRequest) -> Site:
    return Site(settings.SITE_URL.rstrip("/") or f"{request.scheme}://{request.get_host()}")
