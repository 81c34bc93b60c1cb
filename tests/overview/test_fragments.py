"""What all members see alike is made once for those who ask at about the same moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.utils import timezone

from overview import fragments
from overview.fragments import Shared
from overview.models import StoredFacet, digest_of
from overview.queries import overview_of
from tests.connectors.records import ready
from workspaces.models import Workspace
from workspaces.push import panel_changed

PANEL = "/w/acme/panel/"


@pytest.fixture
def made(monkeypatch, settings):
    """The version of each panel that was made, with what is shared of a minute."""
    settings.PANEL_SHARED_SECONDS = 60
    versions = []

    def counted(workspace, now):
        versions.append(workspace.panel_version)
        return overview_of(workspace, now)

    monkeypatch.setattr(fragments, "_shown", Shared(at_most=2))
    monkeypatch.setattr(fragments, "overview_of", counted)
    return versions


@pytest.mark.django_db
def test_members_share_the_panel_of_one_version_and_nobody_gets_that_of_the_one_before(
    made, acme, alice_client, bob_client, carol_client
):
    connector = ready(acme)
    first = {each.get(PANEL).content for each in (alice_client, bob_client, alice_client)}
    assert (len(first), len(made)) == (1, 1)
    assert carol_client.get(PANEL).status_code == 404
    type(connector).objects.update(connection="failed")
    panel_changed(acme.pk)
    assert "Failed" in bob_client.get(PANEL).content.decode()
    assert made == [made[0], Workspace.objects.get(pk=acme.pk).panel_version]


@pytest.mark.django_db
def test_the_page_and_its_fragment_share_what_is_nobodys_own(
    made, acme, alice, alice_client, bob_client
):
    ready(acme)
    pages = [each.get("/w/acme/").content.decode() for each in (alice_client, bob_client)]
    assert alice_client.get(PANEL).content.decode() in pages[0]
    assert len(made) == 1
    assert [str(alice) in page for page in pages] == [True, False]


@pytest.mark.requirement("F-112")
@pytest.mark.django_db
def test_a_count_that_is_about_to_end_ends_the_sharing_with_it(acme, settings):
    settings.PANEL_SHARED_SECONDS = 60
    connector = ready(acme)
    StoredFacet.objects.create(
        connector=connector,
        epoch=connector.epoch,
        name="drafts",
        name_digest=digest_of("drafts"),
        title="Drafts",
        level="warning",
        position=0,
        count="3",
        read_at=timezone.now() - timedelta(seconds=598),
    )
    shown, seconds = fragments._make(acme)
    assert "Drafts" in shown.panel
    assert 0 < seconds <= 2


def test_who_asks_while_one_is_made_waits_for_it():
    shared, begun, go_on = Shared(at_most=2), threading.Event(), threading.Event()
    calls = []

    def make():
        calls.append(1)
        begun.set()
        assert go_on.wait(10)
        return "markup", 60

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(shared.get, "key", make) for _ in range(3)]
        assert begun.wait(10)
        go_on.set()
        assert [each.result(10) for each in asked] == ["markup"] * 3
    assert len(calls) == 1


def test_one_that_is_old_is_made_anew_and_few_are_kept():
    shared, numbers = Shared(at_most=2), iter(range(10))

    def get(key, seconds=60.0):
        return shared.get(key, lambda: (next(numbers), seconds))

    assert [get("a", 0), get("b"), get("a")] == [0, 1, 2]
    assert get("c") == 3
    assert [get("a"), get("b")] == [2, 4]
    assert [get("x", 0), get("x", 0)] == [5, 6]


def test_after_an_error_the_next_one_makes_it():
    shared = Shared(at_most=2)
    with pytest.raises(ZeroDivisionError):
        shared.get("key", lambda: (1 // 0, 60))
    assert shared.get("key", lambda: ("markup", 60)) == "markup"
