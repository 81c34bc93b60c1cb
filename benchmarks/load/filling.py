"""Workspaces with connectors in mid-life and a signed-in person per page, straight into the tables.

    python -m benchmarks.load.filling --workspaces 50 --connectors 2000 --pages 1000 --servers URL

Runs with the environment of the set under load; prints one line of JSON, a page's slug and session
cookie each. Counts and checks are of the last minute, evenly, so that reads come evenly too.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.utils import timezone  # noqa: E402

from benchmarks.filling import CAPABILITIES  # noqa: E402
from benchmarks.peers import PER_SERVER, entry  # noqa: E402
from connectors.models import Connector, Listing, ListingKind  # noqa: E402
from overview.models import StoredFacet, digest_of  # noqa: E402
from workspaces.models import Membership, User, Workspace  # noqa: E402

BATCH = 1000


def workspaces(number: int) -> list[Workspace]:
    return Workspace.objects.bulk_create(
        Workspace(slug=f"team-{n}", name=f"Team {n}") for n in range(number)
    )


def connectors(number: int, found: list[Workspace], servers: str) -> None:
    """Ready connectors, as many in each workspace, and what was read of them so far."""
    now = timezone.now()
    made = Connector.objects.bulk_create(
        (connector_of(n, number, found, servers, now) for n in range(number)), BATCH
    )
    listings, facets = [], []
    for n, connector in enumerate(made):
        # Between fresh and due; a listing is due after five minutes, not one.
        ago = timedelta(seconds=settings.FACET_FRESH_SECONDS * n / number)
        listing_ago = timedelta(seconds=settings.FACET_LISTING_SECONDS * n / number)
        listings += [
            Listing(connector=connector, kind=kind, taken_at=now - listing_ago)
            for kind in ListingKind.values
        ]
        facets += [facet_of(connector, position, now - ago) for position in range(PER_SERVER)]
    Listing.objects.bulk_create(listings, BATCH)
    StoredFacet.objects.bulk_create(facets, BATCH)


def connector_of(n: int, number: int, found: list[Workspace], servers: str, now) -> Connector:
    checked_at = now - timedelta(seconds=settings.CHECK_WATCHED_SECONDS * n / number)
    return Connector(
        workspace=found[n % len(found)],
        slug=f"server-{n}",
        name=f"Server {n}",
        url=f"{servers}/{n}/mcp",
        placements=[{"slot": "main", "route": f"server-{n}", "label": f"Server {n}"}],
        asked_at=now,
        connection="ready",
        first_ready_at=now,
        advertises_facets=True,
        capabilities=CAPABILITIES,
        checked_at=checked_at,
        check_due_at=checked_at + timedelta(seconds=settings.CHECK_WATCHED_SECONDS),
        latency_ms=20,
    )


def facet_of(connector: Connector, position: int, read_at) -> StoredFacet:
    """As the servers list it; the first of each counts something."""
    listed = entry(position)
    return StoredFacet(
        connector=connector,
        name=listed["name"],
        name_digest=digest_of(listed["name"]),
        uri=listed["uri"],
        title=listed["title"],
        level="warning",
        position=position,
        count="0" if position else "3",
        read_at=read_at,
    )


def pages(number: int, found: list[Workspace]) -> list[tuple[str, str]]:
    """A member for each page, signed in; (workspace's slug, session cookie)."""
    people = User.objects.bulk_create(
        (User(email=f"person-{n}@example.com", name=f"Person {n}") for n in range(number)), BATCH
    )
    Membership.objects.bulk_create(
        (
            Membership(workspace=found[n % len(found)], user=person, role="member")
            for n, person in enumerate(people)
        ),
        BATCH,
    )
    return [(found[n % len(found)].slug, session_of(person)) for n, person in enumerate(people)]


def session_of(person: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.create()
    session.save()
    assert session.session_key
    return session.session_key


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspaces", type=int)
    parser.add_argument("--connectors", type=int)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--servers")
    options = parser.parse_args()
    found = workspaces(options.workspaces)
    connectors(options.connectors, found, options.servers)
    print(json.dumps(pages(options.pages, found)))


if __name__ == "__main__":
    main()
