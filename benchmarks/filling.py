"""Workspaces filled with connectors and counts, as if their servers had been read."""

from __future__ import annotations

from django.conf import settings
from django.test import Client
from django.utils import timezone

from connectors.models import Connector, Listing, ListingKind
from connectors.protocol.identifiers import FACETS
from overview.models import StoredFacet, digest_of
from workspaces.models import Membership, User, Workspace

CAPABILITIES = {"resources": {}, "extensions": {FACETS: {}}}


def person() -> User:
    """Somebody who is a member of every filled workspace."""
    found = User.objects.filter(email="person@example.com").first()
    return found or User.objects.create_user("person@example.com", None, name="Person")


def signed_in() -> tuple[Client, str]:
    """That person's client, and the cookie for who asks over HTTP."""
    settings.ALLOWED_HOSTS.append("testserver")
    client = Client()
    client.force_login(person(), backend="django.contrib.auth.backends.ModelBackend")
    name = settings.SESSION_COOKIE_NAME
    return client, f"{name}={client.cookies[name].value}"


def fill(slug: str, *, connectors: int, facets: int, above_zero: int) -> Workspace:
    """A workspace whose first `above_zero` facets count something."""
    now = timezone.now()
    workspace = Workspace.objects.create(slug=slug, name=slug)
    Membership.objects.create(workspace=workspace, user=person(), role="admin")
    for number in range(connectors):
        connector = Connector.objects.create(
            workspace=workspace,
            slug=f"server-{number}",
            name=f"Server {number}",
            url="http://127.0.0.1:9/mcp",
            placements=[{"slot": "main", "route": f"server-{number}", "label": f"Server {number}"}],
            asked_at=now,
            connection="ready",
            first_ready_at=now,
            advertises_facets=True,
            capabilities=CAPABILITIES,
            checked_at=now,
            latency_ms=20,
        )
        Listing.objects.create(connector=connector, kind=ListingKind.RESOURCES, taken_at=now)
        StoredFacet.objects.bulk_create(
            StoredFacet(
                connector=connector,
                name=f"facet-{position}",
                name_digest=digest_of(f"facet-{position}"),
                uri=f"server-{number}://facet-{position}",
                title=f"Things of kind {position} awaiting review",
                level=["critical", "warning", "info"][position % 3],
                position=position,
                count="7" if number * facets + position < above_zero else "0",
                read_at=now,
            )
            for position in range(facets)
        )
    return workspace
