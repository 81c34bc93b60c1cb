from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.models import Connector, ToolCall
from tests.connectors.records import REFUSED, UNREACHABLE, added, asked, contacted, failed, ready
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db


def act(client, name, slug="mail"):
    """Press a button; the connector and what the page then says."""
    answer = client.post(f"/w/acme/connectors/{slug}/{name}/", follow=True)
    assert answer.redirect_chain[-1] == (f"/w/acme/connectors/{slug}/", 302)
    return Connector.objects.get(slug=slug), [str(each) for each in answer.context["messages"]]


def test_connect_asks_for_it_and_says_so(acme, alice, alice_client):
    added(acme)
    connector, said = act(alice_client, "connect")
    assert said == ["Mail is connecting."]
    assert (connector.asked_by, connector.connection) == (alice, "starting")


@pytest.mark.parametrize("outcome", [UNREACHABLE, REFUSED])
def test_reconnect_starts_afresh(acme, alice_client, outcome):
    failed(acme, "mail", outcome=outcome)
    connector, said = act(alice_client, "reconnect")
    assert said == ["Mail is reconnecting."]
    assert (connector.connection, connector.attempt, connector.sign_in_needed) == (
        "starting",
        0,
        False,
    )


@pytest.mark.requirement("F-145")
def test_disconnect_says_what_goes(acme, alice_client):
    ready(acme)
    connector, said = act(alice_client, "disconnect")
    assert said == ["Mail is disconnected. Its rows have left the overview."]
    assert connector.asked_at is None


def test_cancel_ends_the_attempt(acme, alice_client):
    asked(added(acme))
    connector, said = act(alice_client, "cancel")
    assert said == ["Mail is no longer being connected."]
    assert (connector.asked_at, connector.disconnected_at) == (None, None)


def test_any_member_may_have_it_checked(acme, bob_client):
    before = ready(acme)
    Connector.objects.update(check_due_at=timezone.now() + timedelta(minutes=5))
    connector, said = act(bob_client, "check")
    assert said == ["Mail is being checked."]
    assert connector.check_due_at <= timezone.now()
    assert connector.generation == before.generation


@pytest.mark.parametrize(
    ("made", "name", "label"),
    [
        (ready, "connect", "Ready"),
        (ready, "reconnect", "Ready"),
        (ready, "cancel", "Ready"),
        (added, "disconnect", "Not connected"),
        (added, "check", "Not connected"),
        (lambda ws: failed(ws, "mail"), "check", "Failed"),
        (lambda ws: asked(added(ws)), "reconnect", "Starting…"),
    ],
)
def test_what_somebody_else_did_first_is_said_and_nothing_changes(
    acme, alice_client, made, name, label
):
    made(acme)
    before = Connector.objects.values().get()
    _, said = act(alice_client, name)
    assert said == [f"Nothing was changed: the status of Mail is now “{label}”."]
    assert Connector.objects.values().get() == before


@pytest.mark.parametrize("name", ["connect", "disconnect", "cancel", "check", "reconnect"])
def test_a_double_click_is_one_act(acme, alice_client, name):
    if name == "connect":
        added(acme)
    elif name == "cancel":
        asked(added(acme))
    elif name == "reconnect":
        failed(acme, "mail")
    else:
        ready(acme)
    before = AuditEntry.objects.count()
    for _ in range(2):
        act(alice_client, name)
    assert AuditEntry.objects.count() - before == (0 if name == "check" else 1)


def test_a_hostile_name_is_text_in_a_message(acme, alice_client):
    added(acme, name="<img src=x onerror=alert(1)>")
    page = alice_client.post("/w/acme/connectors/mail/connect/", follow=True).content.decode()
    assert "<img" not in page
    assert "&lt;img src=x" in page


def test_removing_tells_what_is_lost_and_until_when_traces_stay(acme, alice_client, settings):
    settings.TRACE_DAYS = 30
    mail = contacted(ready(acme, secrets=[("bearer", "token")]), UNREACHABLE)
    for day in (1, 3):
        ToolCall.objects.create(
            workspace=acme,
            connector=mail,
            tool="send",
            caller="agent",
            started_at=timezone.now().replace(year=2026, month=5, day=day, hour=12),
            duration_ms=1,
            outcome="ok",
        )
    page = alice_client.get("/w/acme/connectors/mail/remove/").content.decode()
    assert "1 credential<" in page
    assert "2 traces of tool calls" in page
    assert "2 June 2026" in page


@pytest.mark.parametrize("typed", ["", "mail", "Mai", "Mail2"])
def test_a_wrong_name_removes_nothing_and_is_said_at_the_field(acme, alice_client, typed):
    added(acme)
    answer = alice_client.post("/w/acme/connectors/mail/remove/", {"typed": typed})
    assert answer.status_code == 200
    assert answer.context["form"].errors == {"typed": ["The name is Mail."]}
    assert Connector.objects.exists()


@pytest.mark.parametrize("name", ["Mail", "<b>Post</b>", "邮件", "  spaced   out "])
def test_the_name_typed_removes_it(acme, alice, alice_client, name):
    added(acme, name=name)
    answer = alice_client.post("/w/acme/connectors/mail/remove/", {"typed": name}, follow=True)
    assert answer.redirect_chain == [("/w/acme/connectors/", 302)]
    assert not Connector.objects.exists()
    assert AuditEntry.objects.last().user == alice
    again = alice_client.post("/w/acme/connectors/mail/remove/", {"typed": name})
    assert again.status_code == 404
