"""A stored secret goes to the server that it was entered for, and to nobody else."""

from __future__ import annotations

import pytest
from django.db import connection

from connectors.models import Connector, Secret
from connectors.queries import target_to
from tests.connectors.records import added, sheet

CONFIGURE = "/w/acme/connectors/mail/configure/"
HOSTS = [
    "https://{tenant}/mcp",
    "https://{tenant}.example.com/mcp",
    "https://mail.{tenant}:8443/mcp",
]
TENANT = {"kind": "variable", "name": "tenant"}


def connector_at(acme, url):
    return added(acme, url=url, secrets=[("bearer", "token"), ("variable", "tenant", "8001")])


def configured(client, url, **secrets):
    fields = {f"secret-{name.replace('_', '-')}": value for name, value in secrets.items()}
    return client.post(CONFIGURE, sheet(url=url, **fields))


@pytest.mark.parametrize("url", HOSTS)
def test_a_part_of_the_address_leads_a_kept_secret_to_no_other_server(acme, alice_client, url):
    """An admin can set the parts of an address, and must not learn by it what nobody can read."""
    connector_at(acme, url)
    answer = configured(alice_client, url, variable_tenant="8002")
    assert answer.status_code == 200
    assert "leads to another server" in answer.content.decode()
    assert "8001" not in answer.content.decode()
    assert Secret.objects.get(**TENANT).value == "8001"


@pytest.mark.parametrize("url", HOSTS)
def test_it_may_lead_elsewhere_when_the_secret_is_entered_again(acme, alice_client, url):
    connector_at(acme, url)
    answer = configured(alice_client, url, variable_tenant="8002", bearer_token="another")
    assert answer.status_code == 302
    assert Secret.objects.get(**TENANT).value == "8002"


def test_a_part_of_the_path_may_change_alone(acme, alice_client):
    url = "https://mail.example.com/{tenant}/mcp"
    connector_at(acme, url)
    assert configured(alice_client, url, variable_tenant="../../x@evil.example/").status_code == 302
    assert target_to(Connector.objects.get()).url.startswith("https://mail.example.com/..%2F")


def test_a_secret_part_cannot_be_made_the_name_of_a_host(acme, alice_client):
    connector_at(acme, "https://mail.example.com/{tenant}/mcp")
    answer = configured(alice_client, "https://{tenant}.evil.example/mcp")
    assert "leads to another server" in answer.content.decode()


def test_a_part_that_no_key_can_read_leads_nowhere_either(acme, alice_client):
    connector_at(acme, HOSTS[1])
    with_another_key = b"gAAAAA-nobody-can-read-this"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE connectors_secret SET value = %s WHERE kind = 'variable'", [with_another_key]
        )
    answer = configured(alice_client, HOSTS[1], variable_tenant="evil")
    assert "leads to another server" in answer.content.decode()
