"""What a connector's page says of one that is not ready, and what it offers to do."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone

from connectors.models import OAuthGrant, ToolCall
from connectors.oauth.tokens import Client
from connectors.sessions import Fault, FaultKind
from tests.connectors.records import REFUSED, UNREACHABLE, added, asked, failed, ready
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.mark.requirement("F-140", "F-141", "F-142", "F-143", "F-144")
@pytest.mark.parametrize(
    ("made", "said", "button"),
    [
        (added, "Nobody has connected it.", "Connect"),
        (lambda ws: asked(added(ws)), "being reached for the first time", "Cancel"),
        (
            lambda ws: asked(added(ws, url="https://{tenant}.example.com/")),
            "Settings without a value: tenant.",
            "Configure",
        ),
        (lambda ws: failed(ws, "mail"), "Nothing listens there.", "Try again"),
        (lambda ws: failed(ws, "mail", REFUSED), "The server refused the credential.", "Sign in"),
        (
            lambda ws: failed(ws, "mail", REFUSED, secrets=[("bearer", "token")]),
            "The server refused the credential.",
            "Reconnect",
        ),
    ],
)
def test_a_problem_says_what_happened_and_what_to_do(
    acme, alice_client, bob_client, made, said, button
):
    made(acme)
    page = alice_client.get("/w/acme/connectors/mail/").content.decode()
    problem = re.search(r'<section class="problem".*?</section>', page, re.S)[0]
    assert said in problem
    assert re.search(rf">{button}</(button|a)>", problem)
    members = bob_client.get("/w/acme/connectors/mail/").content.decode()
    theirs = re.search(r'<section class="problem".*?</section>', members, re.S)[0]
    assert said in theirs
    assert "Admins: <bdi>Alice</bdi>" in theirs
    assert "<button" not in theirs.partition("<details")[0]


@pytest.mark.parametrize(
    ("made", "leads_there"),
    [
        (lambda ws: failed(ws, "mail"), True),
        (lambda ws: failed(ws, "mail", REFUSED), True),
        (lambda ws: failed(ws, "mail", REFUSED, secrets=[("bearer", "token")]), True),
        (lambda ws: asked(added(ws, url="https://{tenant}.example.com/")), True),
        (added, False),
        (lambda ws: asked(added(ws)), False),
    ],
)
def test_advice_about_settings_has_the_way_to_them_beside_it(acme, alice_client, made, leads_there):
    made(acme)
    page = alice_client.get("/w/acme/connectors/mail/").content.decode()
    problem = re.search(r'<section class="problem".*?</section>', page, re.S)[0]
    assert ("/w/acme/connectors/mail/configure/" in problem) is leads_there


def signed_in_once(connector):
    now = timezone.now()
    OAuthGrant.objects.create(
        connector=connector,
        client=Client(id="a").to_json(),
        access_token="a",
        issued_at=now,
        signed_in_at=now,
    )


def refused_a_call(connector):
    ToolCall.objects.create(
        workspace=connector.workspace or Workspace.objects.get(slug="acme"),
        connector=connector,
        started_at=timezone.now(),
        duration_ms=1,
        outcome="failed",
        fault=FaultKind.UNAUTHORIZED,
    )


@pytest.mark.parametrize("is_personal", [False, True])
@pytest.mark.parametrize(
    ("outcome", "also", "is_offered"),
    [
        (None, None, False),
        (UNREACHABLE, None, False),
        (REFUSED, None, True),
        (None, signed_in_once, True),
        (UNREACHABLE, signed_in_once, True),
        (None, refused_a_call, True),
    ],
)
def test_a_sign_in_is_offered_where_the_server_wants_one_or_had_one(
    acme, alice, alice_client, outcome, also, is_offered, is_personal
):
    home = {"workspace": None, "owner": alice} if is_personal else {"workspace": acme}
    connector = failed(slug="mail", outcome=outcome, **home) if outcome else ready(**home)
    if also:
        also(connector)
    path = "/account/connectors/" if is_personal else "/w/acme/connectors/mail/"
    html = alice_client.get(path).content.decode()
    assert ("connectors/mail/sign-in/" in html) is is_offered


def test_a_ready_connector_has_no_problem(acme, alice_client):
    ready(acme)
    assert alice_client.get("/w/acme/connectors/mail/").context["problem"] is None


def test_the_technical_error_waits_behind_a_disclosure(acme, alice_client):
    failed(acme, "mail", outcome=Fault(FaultKind.HTTP, "It answered 502.", http_status=502))
    html = alice_client.get("/w/acme/connectors/mail/").content.decode()
    assert "http, HTTP 502: It answered 502." in html.partition("<details")[2]
