"""The overview's page, fragment and JSON: who may see them, what they hold, what they cost."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from connectors.protocol.facets import Level
from overview.models import StoredFacet, digest_of
from tests.overview.factories import make_connector
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
PAGES = ["", "panel/", "attention.json", "app/outbound"]
PLACED = [{"slot": "main", "route": "outbound", "label": "Outbound"}]


def put_count(connector, name="drafts", count: str | None = "3", **changes):
    now = timezone.now()
    known = {
        "uri": f"acme://{name}",
        "title": "Drafts awaiting review",
        "level": Level.WARNING.value,
        "position": 0,
        "read_at": now,
        "epoch": connector.epoch,
    }
    return StoredFacet.objects.create(
        connector=connector,
        name=name,
        name_digest=digest_of(name),
        count=count,
        **{**known, **changes},
    )


@pytest.fixture
def outbound(acme):
    connector = make_connector(acme, placements=PLACED)
    put_count(connector)
    return connector


def same(response):
    """The page without what differs at each look."""
    return re.sub(r'(data-now|value)="[^"]*"', "", response.content.decode())


@pytest.mark.requirement("F-149", "F-150")
@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_and_a_workspace_that_does_not_exist_get_the_same_404(
    path, carol_client, outbound
):
    theirs = carol_client.get(f"/w/acme/{path}")
    nowhere = carol_client.get(f"/w/nowhere/{path}")
    assert theirs.status_code == nowhere.status_code == 404
    assert same(theirs) == same(nowhere).replace("nowhere", "acme")


@pytest.mark.parametrize(
    ("path", "status"), [("", 302), ("app/outbound", 302), ("panel/", 401), ("attention.json", 401)]
)
def test_signed_out_a_page_leads_to_sign_in_and_data_says_401(path, status, client, outbound):
    assert client.get(f"/w/acme/{path}").status_code == status


@pytest.mark.requirement("F-090", "F-092", "F-104")
def test_every_member_sees_the_same_rows(alice_client, bob_client, outbound):
    put_count(outbound, "old", "12345", title="Replies received")
    rows = [
        client.get("/w/acme/attention.json").json()["rows"] for client in (alice_client, bob_client)
    ]
    assert rows[0] == rows[1]
    page = bob_client.get("/w/acme/").content.decode()
    assert '<span class="row__count">3</span> <bdi>Drafts awaiting review</bdi>' in page
    assert '<span class="row__count">12345</span>' in page


def test_the_json_has_the_public_shape(bob_client, outbound):
    body = bob_client.get("/w/acme/attention.json").json()
    assert body["version"] == Workspace.objects.get(slug="acme").panel_version
    (row,) = body["rows"]
    assert row.pop("counted_at").endswith("+00:00")
    assert row == {
        "key": f"{outbound.pk}/drafts",
        "level": "warning",
        "count": "3",
        "title": "Drafts awaiting review",
        "app": "Outbound",
        "state": "ok",
        "href": "/w/acme/app/outbound",
    }


def test_an_unchanged_answer_is_304(bob_client, outbound):
    for path in ("attention.json", "panel/"):
        first = bob_client.get(f"/w/acme/{path}")
        again = bob_client.get(f"/w/acme/{path}", headers={"if-none-match": first["ETag"]})
        assert again.status_code == 304
        assert not again.content


@pytest.mark.requirement("F-105", "F-106", "F-119")
def test_no_row_and_everything_ready_means_no_panel_at_all(bob_client, acme, outbound):
    StoredFacet.objects.update(count="0")
    assert b'id="attention"' not in bob_client.get("/w/acme/").content
    make_connector(acme, "mail", connection="failed")
    page = bob_client.get("/w/acme/").content.decode()
    assert 'id="attention"' in page
    assert 'href="/w/acme/connectors/mail/"' in page


def test_a_workspace_without_apps_says_who_can_change_that(alice_client, bob_client):
    for client, words, can in [
        (alice_client, b"Connect a server to add one.", True),
        (bob_client, b"An admin can connect a server to add one.", False),
    ]:
        page = client.get("/w/acme/").content
        assert words in page
        assert (b"/connectors/add/" in page) is can


HOSTILE = [
    "x" * 5000,
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "{{ 700000|add:77777 }}{% load x %}",
    "\u202eevil\u202c \u200b\ufeff",
    "الرسائل 📬",
]


@pytest.mark.requirement("F-040")
@pytest.mark.parametrize("title", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_title_shows_as_text(title, bob_client, outbound):
    StoredFacet.objects.update(title=title)
    page = bob_client.get("/w/acme/").content.decode()
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert "777777" not in page
    assert bob_client.get("/w/acme/attention.json").json()["rows"][0]["title"] == title


@pytest.mark.requirement("F-099")
@pytest.mark.parametrize(
    "route",
    ["//evil.example", "javascript:alert(1)", "../../admin", "https://evil.example/", "a b"],
)
def test_a_hostile_route_never_leads_out_of_the_app_area(route, bob_client, acme):
    put_count(make_connector(acme, placements=[{"slot": "main", "route": route, "label": "Evil"}]))
    assert bob_client.get("/w/acme/attention.json").json()["rows"][0]["href"] is None


@pytest.mark.requirement("F-097", "F-098")
def test_a_route_that_the_shell_does_not_place_has_no_page(bob_client, acme):
    put_count(make_connector(acme, placements=[{"slot": "settings.page", "route": "outbound"}]))
    (row,) = bob_client.get("/w/acme/attention.json").json()["rows"]
    assert row["href"] is None
    assert bob_client.get("/w/acme/app/outbound").status_code == 404


@pytest.mark.requirement("F-097")
def test_a_row_opens_the_apps_page_inside_the_workspace(bob_client, outbound):
    href = bob_client.get("/w/acme/attention.json").json()["rows"][0]["href"]
    page = bob_client.get(href)
    assert page.status_code == 200
    assert b"Drafts awaiting review" in page.content
    assert bob_client.get("/w/acme/app/unknown").status_code == 404


@pytest.mark.parametrize("path", ["", "panel/", "attention.json"])
def test_the_number_of_statements_is_at_most_eight_whatever_the_workspace_holds(
    path, bob_client, acme, outbound
):
    def statements():
        Workspace.objects.update(watched_until=None)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert bob_client.get(f"/w/acme/{path}").status_code == 200
        return len(captured)

    few = statements()
    for number in range(60):
        put_count(make_connector(acme, f"server-{number}"))
    assert statements() == few <= 8


def test_opening_the_page_has_the_workspace_watched(bob_client, outbound):
    bob_client.get("/w/acme/")
    watched_until = Workspace.objects.get(slug="acme").watched_until
    assert watched_until is not None and watched_until > timezone.now()


@pytest.mark.requirement("F-013")
def test_a_persons_own_connector_is_on_no_overview(alice, alice_client, acme):
    put_count(make_connector(None, "mine", owner=alice, placements=PLACED))
    assert json.loads(alice_client.get("/w/acme/attention.json").content)["rows"] == []
    page = alice_client.get("/w/acme/").content.decode()
    assert "attention-list" not in page
    assert "Mine" not in page
    assert alice_client.get("/w/acme/app/outbound").status_code == 404


def test_nothing_on_the_page_is_written_by_hand_into_a_script(bob_client, outbound):
    page = bob_client.get("/w/acme/")
    assert "unsafe" not in page["Content-Security-Policy"]
    assert "style=" not in page.content.decode()
    json.loads(bob_client.get("/w/acme/attention.json").content)


@pytest.mark.requirement("F-113")
def test_the_fragment_says_when_a_count_ends(bob_client, outbound):
    (read_at,) = StoredFacet.objects.values_list("read_at", flat=True)
    until = (read_at + timedelta(seconds=600)).isoformat()
    assert f'data-until="{until}"' in bob_client.get("/w/acme/panel/").content.decode()
