"""A process that dies at any point of a sign-in or a renewal, and the one click out of it.

Each point is a seam before or after a request or a write. A death there is an exception that
nothing of ours catches: the database takes back what was not committed, as it does for a killed
process, and what the process knew is forgotten. `test_oauth_renewal.py` and the end of this file
kill real ones.
"""

from __future__ import annotations

import importlib
import inspect
from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.models import Connector, OAuthGrant
from connectors.runtime import close_runtime
from connectors.sessions import Fault
from connectors.status import Status
from tests.connectors.reading_process import begin, reading_process
from tests.connectors.signing_in import (
    aged,
    departure,
    grant_of,
    look,
    press_sign_in,
    read,
    sign_in,
    signed_in,
    status,
    wanting,
)
from tests.servers.authorization import answer, sent_back

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/w/acme/connectors/mail/"


class Died(BaseException):
    """What no `except Exception` holds up."""


def dying(monkeypatch, place, when, turn=1):
    """The process dies at the call of this name: the turn-th one, before or after it was made."""
    module, _, name = place.rpartition(".")
    real = getattr(importlib.import_module(module), name)
    left = [turn]

    def is_now():
        left[0] -= 1
        return left[0] == 0

    def dies(*args, **kwargs):
        is_last = is_now()
        if is_last and when == "before":
            raise Died
        outcome = real(*args, **kwargs)
        if is_last:
            raise Died
        return outcome

    async def dies_async(*args, **kwargs):
        is_last = is_now()
        if is_last and when == "before":
            raise Died
        outcome = await real(*args, **kwargs)
        if is_last:
            raise Died
        return outcome

    monkeypatch.setattr(place, dies_async if inspect.iscoroutinefunction(real) else dies)


def another_process(monkeypatch):
    """Nothing of the dead one is left but what it stored."""
    monkeypatch.undo()
    close_runtime()


@pytest.fixture
def patches():
    """Of its own: undoing them must not undo what the fixtures have set."""
    with pytest.MonkeyPatch.context() as patches:
        yield patches


OUT = [
    ("connectors.oauth.discovery.send", "before", 1),
    *(("connectors.oauth.discovery.send", "after", turn) for turn in (1, 2, 3)),
    ("connectors.oauth.discovery.send", "before", 4),  # The registration.
    ("connectors.oauth.discovery.send", "after", 4),
    ("connectors.oauth.acts.begin_sign_in", "before", 1),
    ("connectors.oauth.acts.panel_of", "before", 1),  # Inside the transaction of that write.
    ("connectors.oauth.acts.begin_sign_in", "after", 1),
]
BACK = [
    ("connectors.views.sign_in.take_pending", "before", 1),
    ("connectors.views.sign_in.take_pending", "after", 1),
    ("connectors.oauth.flow.send", "before", 1),
    ("connectors.oauth.flow.send", "after", 1),
    ("connectors.oauth.acts.finish_sign_in", "before", 1),
    ("connectors.oauth.acts.audit", "before", 1),  # Inside the transaction of that write.
    ("connectors.oauth.acts.check_soon", "after", 1),
]


@pytest.fixture(params=["new", "working"])
def connector(request, acme, alice_client, server):
    """One that never worked, one whose sign-in the server ended, and one that is ready."""
    if request.param == "new":
        return wanting(acme, server)
    made = signed_in(acme, alice_client, server)
    if request.param == "refused":
        server.refuses_all = True
        read(made)
        server.refuses_all = False
        assert status(made) is Status.RECONNECTION_NEEDED
    return made


def leave_by_one_click(client, connector):
    """The page offers to sign in, and that is all it takes."""
    page = client.get(PAGE).content.decode()
    assert f'action="{PAGE}sign-in/"' in page
    sign_in(client)
    assert status(look(connector)) is Status.READY
    assert not isinstance(read(connector), Fault)


@pytest.mark.parametrize(("place", "when", "turn"), OUT)
def test_on_the_way_out(connector, alice_client, patches, place, when, turn):
    before = status(connector)
    dying(patches, place, when, turn)
    with pytest.raises(Died):
        press_sign_in(alice_client)
    another_process(patches)
    is_noted = (place, when) == ("connectors.oauth.acts.begin_sign_in", "after")
    assert status(connector) is (Status.CONNECTING if is_noted else before)
    leave_by_one_click(alice_client, connector)


@pytest.mark.parametrize(("place", "when", "turn"), BACK)
def test_on_the_way_back(connector, alice_client, patches, place, when, turn):
    back = sent_back(departure(alice_client))
    dying(patches, place, when, turn)
    with pytest.raises(Died):
        alice_client.get(back)
    another_process(patches)
    assert status(connector) is Status.CONNECTING
    leave_by_one_click(alice_client, connector)


def test_after_the_last_write_of_a_sign_in_nothing_is_lost(connector, alice_client, patches):
    """The check was not even queued: the sweep finds it due."""
    back = sent_back(departure(alice_client))
    dying(patches, "connectors.oauth.acts.finish_sign_in", "after")
    with pytest.raises(Died):
        alice_client.get(back)
    another_process(patches)
    assert status(connector) is Status.STARTING
    assert Connector.objects.get().check_due_at <= timezone.now()
    assert status(look(connector)) is Status.READY
    # Whoever reloads the page that never came is told so, and nothing is changed.
    assert alice_client.get(back).status_code == 400
    assert status(connector) is Status.READY


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", ["end_sign_in", "forget_scopes"])
def test_when_the_sign_in_was_refused(connector, alice_client, server, patches, place, when):
    server.declines = {"error": "invalid_scope"}
    back = sent_back(departure(alice_client))
    dying(patches, f"connectors.oauth.acts.{place}", when)
    with pytest.raises(Died):
        alice_client.get(back)
    another_process(patches)
    server.declines = {}
    leave_by_one_click(alice_client, connector)


@pytest.mark.parametrize("connector", ["new", "refused", "working"], indirect=True)
def test_nobody_clicks_for_a_quarter_of_an_hour(connector, alice_client, patches):
    was_working = connector.connection == "ready"
    back = sent_back(departure(alice_client))
    dying(patches, "connectors.views.sign_in.take_pending", "after")
    with pytest.raises(Died):
        alice_client.get(back)
    another_process(patches)
    Connector.objects.update(sign_in_started_at=timezone.now() - timedelta(minutes=15))
    if status(connector) is Status.AT_REST:
        assert f'action="{PAGE}connect/"' in alice_client.get(PAGE).content.decode()
        alice_client.post(f"{PAGE}connect/")
        look(connector)
    if was_working and grant_of(connector) is not None:
        assert status(connector) is Status.READY
    else:
        assert status(connector) is Status.RECONNECTION_NEEDED
        leave_by_one_click(alice_client, connector)


GRANTS = "connectors.oauth.grants"
SEND = "connectors.oauth.renewal.send"
UNSPENT = [
    (f"{GRANTS}.current", "before"),
    (f"{GRANTS}.claim", "before"),
    (f"{GRANTS}.claim", "after"),
    (SEND, "before"),
]
SPENT = [(SEND, "after"), (f"{GRANTS}.keep", "before")]
KEPT = [(f"{GRANTS}.keep", "after")]


@pytest.fixture
def signed(acme, alice_client, server):
    return signed_in(acme, alice_client, server)


def dies_renewing(connector, patches, place, when):
    aged(connector)
    dying(patches, place, when)
    with pytest.raises(Died):
        read(connector)
    another_process(patches)
    # Nobody waits for a dead process longer than its lease.
    OAuthGrant.objects.filter(lease_until__isnull=False).update(lease_until=timezone.now())


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(("place", "when"), UNSPENT + KEPT)
def test_a_renewal_that_was_not_sent_or_is_stored_costs_nothing(signed, patches, place, when):
    dies_renewing(signed, patches, place, when)
    assert status(signed) is Status.READY
    assert not isinstance(read(signed), Fault)
    assert status(look(signed)) is Status.READY
    assert grant_of(signed).sent_at is None


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(("place", "when"), SPENT)
def test_a_renewal_whose_answer_is_lost_costs_one_sign_in_with_the_cause(
    signed, alice_client, patches, place, when
):
    dies_renewing(signed, patches, place, when)
    assert isinstance(read(signed), Fault)
    assert status(signed) is Status.RECONNECTION_NEEDED
    assert "this host stopped" in alice_client.get(PAGE).content.decode()
    leave_by_one_click(alice_client, signed)


@pytest.mark.requirement("D10", "D11")
@pytest.mark.parametrize(
    ("place", "when"),
    [(f"{GRANTS}.refuse", "before"), (f"{GRANTS}.panel_changed", "before"), (SEND, "after")],
)
def test_a_refusal_that_was_not_stored_is_met_again(
    signed, alice_client, server, patches, place, when
):
    server.answers["/token"] = answer(400, {"error": "invalid_grant"})
    dies_renewing(signed, patches, place, when)
    assert status(signed) is Status.READY
    look(signed)
    assert status(signed) is Status.RECONNECTION_NEEDED
    server.answers.clear()
    leave_by_one_click(alice_client, signed)


@pytest.mark.requirement("D10", "D11")
def test_a_refusal_that_was_stored_is_a_refusal(signed, alice_client, server, patches):
    server.answers["/token"] = answer(400, {"error": "invalid_grant"})
    dies_renewing(signed, patches, f"{GRANTS}.refuse", "after")
    assert status(signed) is Status.RECONNECTION_NEEDED
    server.answers.clear()
    leave_by_one_click(alice_client, signed)


@pytest.mark.requirement("D10", "D11")
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_outage_of_the_token_endpoint_costs_nothing(signed, server, patches, when):
    server.answers["/token"] = answer(503)
    dies_renewing(signed, patches, f"{GRANTS}.release", when)
    server.answers.clear()
    assert status(signed) is Status.READY
    assert not isinstance(read(signed), Fault)
    assert status(look(signed)) is Status.READY


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(("place", "is_spent"), [(SEND, False), (f"{GRANTS}.keep", True)])
def test_a_process_that_is_killed_there(signed, alice_client, place, is_spent):
    aged(signed)
    with reading_process(signed, dies_at=place) as process:
        begin(process)
        assert process.wait(20) == -9
    OAuthGrant.objects.update(lease_until=timezone.now())
    assert isinstance(read(signed), Fault) is is_spent
    if is_spent:
        leave_by_one_click(alice_client, signed)
    assert status(look(signed)) is Status.READY
