"""How many of the due connectors a sweep takes: who is waited for, and the oldest of the others."""

from __future__ import annotations

import pytest
from django.db.models import Q

from connectors.models import Listing
from overview.due import LEAST, due_at_pace, due_connectors
from overview.models import StoredFacet, digest_of
from tests.overview.factories import at, make_connector

pytestmark = pytest.mark.django_db

EVERYBODY = Q()


@pytest.fixture
def old(acme):
    """Connectors whose counts are old, the first the oldest; none is to be listed."""
    made = [make_connector(acme, f"server-{number}") for number in range(LEAST * 2)]
    StoredFacet.objects.bulk_create(
        StoredFacet(
            connector=each,
            name="drafts",
            name_digest=digest_of("drafts"),
            uri="acme://drafts",
            level="info",
            position=0,
            epoch=each.epoch,
            read_at=at(number / 100),
        )
        for number, each in enumerate(made)
    )
    Listing.objects.update(taken_at=at(61), epoch=1)
    return [each.pk for each in made]


def test_of_counts_that_have_only_become_old_the_oldest_are_read_first(old):
    assert due_connectors(EVERYBODY, at(61)) == old
    assert due_at_pace(EVERYBODY, at(61)) == old[:LEAST]
    StoredFacet.objects.filter(connector__in=old[:LEAST]).update(read_at=at(61))
    assert due_at_pace(EVERYBODY, at(62)) == old[LEAST:]


@pytest.mark.parametrize(
    "facts",
    [
        {"read_at": None},
        {"read_at": at(-540)},  # No longer shown.
        {"failed_at": at(30)},
        {"changed_at": at(60)},
        {"epoch": 0},
    ],
)
def test_what_somebody_waits_for_is_read_at_once_whatever_else_is_due(old, facts):
    waiting = old[-5:]
    StoredFacet.objects.filter(connector__in=waiting).update(**facts)
    assert due_at_pace(EVERYBODY, at(61)) == [*old[:LEAST], *waiting]


def test_the_pace_is_enough_to_read_everything_in_time(old, settings):
    settings.FACET_FRESH_SECONDS = 1
    assert due_at_pace(EVERYBODY, at(61)) == old


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, LEAST),
        ({"taken_at": None}, LEAST * 2),
        ({"failed_at": at(100)}, LEAST * 2),
        ({"epoch": 0}, LEAST * 2),
    ],
)
def test_listings_that_have_only_become_old_keep_the_pace_too(old, facts, expected):
    StoredFacet.objects.all().delete()
    Listing.objects.update(**facts)
    assert len(due_at_pace(EVERYBODY, at(400))) == expected


def test_counts_that_came_together_are_soon_read_in_turns(old):
    """Each sweep's connectors are read at once here; in no second many more than their share."""
    StoredFacet.objects.update(read_at=at(0))
    read = []
    for second in range(60, 200):
        taken = due_at_pace(EVERYBODY, at(second))
        StoredFacet.objects.filter(connector__in=taken).update(read_at=at(second))
        Listing.objects.update(taken_at=at(second))
        read.append(len(taken))
    assert max(read) == LEAST and sum(read) >= 2 * len(old)
