"""The operators' page: whose connectors do not work and why, and nothing of their facets."""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from connectors.models import Secret, SecretKind
from overview.models import StoredFacet, digest_of
from overview.operators.waiting import waiting_connectors
from tests.overview.factories import make_connector
from workspaces.models import User

PAGE = "/operators/connectors/"


@pytest.fixture
def operator(db):
    return User.objects.create_superuser("op@example.com", "Op-secret-123")


@pytest.fixture
def operator_client(operator):
    client = Client()
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def failed(workspace, slug, hours, **changes):
    since = timezone.now() - timedelta(hours=hours)
    facts = {"connection": "failed", "connection_since": since, "failure": f"{slug} is silent."}
    return make_connector(workspace, slug=slug, **{**facts, **changes})


def lines(answer):
    return list(csv.DictReader(answer.content.decode().splitlines()))


def test_there_is_no_such_page_for_members_and_none_of_them_sees_a_link(alice_client):
    assert alice_client.get(PAGE).status_code == 404
    assert alice_client.get(f"{PAGE}?format=csv").status_code == 404
    assert PAGE not in alice_client.get("/w/acme/").content.decode()


def test_signed_out_people_are_asked_to_sign_in(db):
    assert Client().get(PAGE).status_code == 302


def test_an_operator_finds_the_page_in_the_menu(operator_client):
    assert PAGE in operator_client.get("/workspaces/").content.decode()


def test_it_says_whose_connector_waits_why_and_since_when_the_longest_first(
    operator_client, acme, other
):
    failed(acme, "mail", 1)
    failed(other, "crm", 5)
    make_connector(acme, slug="fine")
    make_connector(acme, slug="resting", asked_at=None, connection="idle")
    html = operator_client.get(PAGE).content.decode()
    assert html.index("crm is silent.") < html.index("mail is silent.")
    assert "Acme" in html and "Other" in html
    assert "Fine" not in html and "Resting" not in html


def test_each_way_of_not_being_ready_has_its_reason(acme):
    now = timezone.now()
    make_connector(acme, slug="variable", url="https://{tenant}.example.com/mcp")
    filled = make_connector(acme, slug="filled", url="https://{tenant}.example.com/mcp")
    Secret.objects.create(connector=filled, kind=SecretKind.VARIABLE, name="tenant", value="a")
    make_connector(acme, slug="signing-in", sign_in_started_at=now, connection="idle")
    make_connector(acme, slug="refused", credential_refused_at=now)
    make_connector(acme, slug="starting", connection="starting")
    failed(acme, "failed", 1)
    found = {each.slug: (each.status.value, each.reason) for each in waiting_connectors(now)}
    assert found == {
        "variable": ("configuration_required", "Settings without a value: tenant."),
        "signing-in": ("connecting", "A sign-in to the server is under way."),
        "refused": ("reconnection_needed", "The server wants a sign-in."),
        "starting": ("starting", "The server is being reached for the first time."),
        "failed": ("failed", "failed is silent."),
    }


def test_neither_the_page_nor_the_export_tells_of_facets(operator_client, acme):
    connector = failed(acme, "mail", 1)
    StoredFacet.objects.create(
        connector=connector,
        name="salaries",
        name_digest=digest_of("salaries"),
        uri="mail://salaries",
        title="Salaries to approve",
        level="info",
        position=0,
        count="4711",
        read_at=timezone.now(),
        epoch=1,
    )
    for query in ["", "?format=csv"]:
        text = operator_client.get(PAGE + query).content.decode()
        assert "mail is silent." in text
        assert "alaries" not in text and "4711" not in text


def test_it_is_filtered_and_exported_alike(operator_client, acme, other):
    failed(acme, "mail", 1)
    failed(other, "crm", 2)
    make_connector(other, slug="starting", connection="starting")
    chosen = operator_client.get(f"{PAGE}?status=failed&q=oth&format=csv")
    assert chosen["Content-Disposition"].startswith("attachment")
    assert [(row["workspace"], row["connector"], row["status"]) for row in lines(chosen)] == [
        ("other", "crm", "failed")
    ]
    assert "No connectors match." in operator_client.get(f"{PAGE}?q=zzz").content.decode()


def test_an_export_holds_no_formulas(operator_client, acme):
    failed(acme, "mail", 1, name="=HYPERLINK(1)", failure="@sum")
    (row,) = lines(operator_client.get(f"{PAGE}?format=csv"))
    assert (row["name"], row["reason"]) == ("'=HYPERLINK(1)", "'@sum")


def test_it_costs_the_same_whatever_the_workspaces_hold(
    operator_client, acme, other, django_assert_max_num_queries
):
    for number in range(8):
        kinds = (
            {"connection": "failed"} if number % 2 else {"credential_refused_at": timezone.now()}
        )
        make_connector([acme, other][number % 2], slug=f"c-{number}", **kinds)
    make_connector(acme, slug="variable", url="https://{tenant}.example.com/mcp")
    # The session, the person, the connectors, their secrets, the switcher.
    with django_assert_max_num_queries(5):
        operator_client.get(PAGE)
