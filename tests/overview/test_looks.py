"""Many open pages are looked after together: what each is told, and what that costs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from overview import looks
from overview.looks import Page, Place, Refusal, Together, look
from workspaces.actions import remove_member

pytestmark = pytest.mark.django_db


def session_of(client):
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


def is_at(client, slug="acme"):
    """What an open page of this browser is told."""
    page = Page(session_of(client), slug)
    return look([page])[page]


@pytest.mark.requirement("F-149", "F-150")
def test_each_of_many_pages_is_told_its_own(acme, other, bob_client, carol_client):
    bob, carol = session_of(bob_client), session_of(carol_client)
    found = look(
        {
            Page(bob, "acme"),
            Page(bob, other.slug),
            Page(carol, "acme"),
            Page(carol, other.slug),
            Page(carol, "nowhere"),
            Page("", "acme"),
            Page("nobody", "acme"),
        }
    )
    assert found == {
        Page(bob, "acme"): Place(acme.pk, 0),
        Page(bob, other.slug): Refusal.NO_ACCESS,
        Page(carol, "acme"): Refusal.NO_ACCESS,
        Page(carol, other.slug): Place(other.pk, 0),
        Page(carol, "nowhere"): Refusal.NO_ACCESS,
        Page("", "acme"): Refusal.SIGNED_OUT,
        Page("nobody", "acme"): Refusal.SIGNED_OUT,
    }


def test_a_hundred_pages_cost_as_many_statements_as_one(acme, bob):
    def opened():
        client = Client()
        client.force_login(bob)
        return Page(session_of(client), "acme")

    pages = [opened() for _ in range(100)]
    look(pages[:1])
    with CaptureQueriesContext(connection) as of_one:
        look(pages[:1])
    with CaptureQueriesContext(connection) as of_all:
        found = look(pages)
    assert len(of_all) == len(of_one) == 4
    assert set(found.values()) == {Place(acme.pk, 0)}


def test_a_cookie_that_no_database_takes_is_its_owners_trouble_alone(acme, bob_client):
    bad, good = Page("a\x00b" * 20, "acme"), Page(session_of(bob_client), "acme")
    assert look([bad, good]) == {bad: Refusal.SIGNED_OUT, good: Place(acme.pk, 0)}


def test_a_session_ends_with_its_time_its_account_and_its_password(acme, bob, bob_client):
    assert is_at(bob_client) == Place(acme.pk, 0)
    bob.set_password("another one")
    bob.save()
    assert is_at(bob_client) == Refusal.SIGNED_OUT
    again = Client()
    again.force_login(bob)
    assert is_at(again) == Place(acme.pk, 0)
    bob.is_active = False
    bob.save()
    assert is_at(again) == Refusal.SIGNED_OUT
    bob.is_active = True
    bob.save()
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert is_at(again) == Refusal.SIGNED_OUT


def test_a_session_of_the_key_before_stays_as_it_is(acme, bob_client, settings):
    """A socket cannot give the browser the cookie of a new session."""
    session = session_of(bob_client)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "x" * 50
    assert is_at(bob_client) == Place(acme.pk, 0)
    assert Session.objects.filter(session_key=session).exists()


def test_a_page_of_somebody_who_left_is_refused(acme, alice, bob, bob_client):
    remove_member(acme, bob, by=alice)
    assert is_at(bob_client) == Refusal.NO_ACCESS


@pytest.mark.django_db(transaction=True)
def test_who_asks_at_the_same_time_is_answered_together_and_in_bounded_rounds(monkeypatch):
    monkeypatch.setattr(looks, "AT_ONCE", 3)
    rounds = []

    def doubled(keys):
        rounds.append(sorted(keys))
        return {key: key * 2 for key in keys if key != 4}

    together = Together(doubled)

    async def crowd():
        leaving = asyncio.create_task(together.ask(0))
        asking = [asyncio.create_task(together.ask(key)) for key in (1, 1, 2, 3, 4)]
        await asyncio.sleep(0)
        leaving.cancel()
        return await asyncio.gather(*asking)

    # Each in an event loop of its own.
    for _ in range(2):
        assert asyncio.run(crowd()) == [2, 2, 4, 6, None]
    assert rounds == [[0, 1], [2, 3, 4]] * 2


@pytest.mark.django_db(transaction=True)
def test_a_round_that_failed_is_said_once_and_the_next_one_is_asked(caplog):
    trouble = [ConnectionError("no database")]

    def answers(keys):
        if trouble:
            raise trouble.pop()
        return dict.fromkeys(keys, "here")

    together = Together(answers)

    async def twice():
        return [await asyncio.gather(*(together.ask(key) for key in (1, 2))) for _ in range(2)]

    assert asyncio.run(twice()) == [[None, None], ["here", "here"]]
    assert len(caplog.records) == 1
