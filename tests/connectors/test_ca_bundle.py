"""An authority of one's own, trusted for one connector: entered, checked, and really used."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from connectors.inputs import clean_bundle, problem_of_bundle
from connectors.models import Connector, OAuthGrant
from connectors.runtime import close_runtime
from connectors.tasks import check_connector
from tests.connectors.diagnosing import diagnose_server
from tests.connectors.records import MARKER, added, asked, ready, sheet
from tests.servers.certificates import Authority
from tests.servers.raw import raw_server
from workspaces.models import AuditEntry

CONFIGURE = "/w/acme/connectors/mail/configure/"


@pytest.fixture(autouse=True)
def _no_sessions_left():
    yield
    close_runtime()


@pytest.fixture(scope="module")
def authority():
    return Authority()


def checked(connector, queued):
    check_connector(asked(connector).pk)
    connector.refresh_from_db()
    return connector.connection, connector.failure


@pytest.mark.django_db
def test_a_server_of_an_own_authority_is_reached_with_its_bundle_alone(
    acme, queued, authority, tmp_path
):
    with raw_server(tls=authority.context_for(tmp_path)) as server:
        trusting = added(acme, "trusting", url=server.url, ca_bundle=authority.bundle)
        other = added(acme, "other", url=server.url)
        assert checked(trusting, queued) == ("ready", "")
        connection, failure = checked(other, queued)
        assert connection == "failed"
        assert "certificate is not valid" in failure
        close_runtime()  # Before the server, which waits for its clients' farewell.


@pytest.mark.django_db
def test_a_new_bundle_is_a_new_connection_and_keeps_the_sign_in(alice_client, acme, authority):
    connector = ready(acme)
    now = timezone.now()
    OAuthGrant.objects.create(
        connector=connector,
        issuer="https://auth.example.com",
        token_endpoint="https://auth.example.com/token",
        resource=connector.url,
        client=json.dumps({"id": "us"}),
        access_token=MARKER,
        issued_at=now,
        signed_in_at=now,
    )
    entered = f"\r\n{authority.bundle}\r\n".replace("\n", "\r\n")
    answer = alice_client.post(CONFIGURE, sheet(ca_bundle=entered))
    assert answer.status_code == 302
    changed = Connector.objects.get()
    assert changed.ca_bundle == authority.bundle.strip()
    assert changed.generation == connector.generation + 1
    assert OAuthGrant.objects.count() == 1
    assert "another CA bundle" in AuditEntry.objects.latest("pk").subject
    page = alice_client.get(CONFIGURE).content.decode()
    assert authority.bundle.splitlines()[1] in page
    alice_client.post(CONFIGURE, sheet(ca_bundle=changed.ca_bundle))
    assert Connector.objects.get().generation == changed.generation


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("entered", "words"),
    [
        ("certificate", "not certificates in PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "not certificates"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "private key"),
        ("Főtanúsítvány", "not certificates in PEM"),
        ("A" * 70_000, "longer than 64 KiB"),
    ],
)
def test_what_is_no_bundle_is_said_in_words(alice_client, acme, entered, words):
    added(acme)
    answer = alice_client.post(CONFIGURE, sheet(ca_bundle=entered))
    assert words in answer.content.decode()
    assert Connector.objects.get().ca_bundle == ""


def test_none_and_several_with_comments_between_them_are_fine(authority):
    assert problem_of_bundle(clean_bundle(" ")) is None
    several = f"# Főtanúsítvány\n{authority.bundle}\n\n# Another\n{Authority().bundle}"
    assert problem_of_bundle(clean_bundle(several)) is None
    assert clean_bundle(several).count("BEGIN CERTIFICATE") == 2
    assert "#" not in clean_bundle(several)


@pytest.mark.django_db
def test_the_command_takes_it_from_a_file(acme, authority, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text(authority.bundle)
    words = ["connector", "add", "acme", "mail", "https://mail.example.com/mcp", "--name", "Mail"]
    call_command(*words, "--ca-bundle", str(path), stdout=io.StringIO())
    assert Connector.objects.get().ca_bundle == authority.bundle.strip()
    path.write_bytes(b"\xff\xfe")
    words[3] = "other"
    with pytest.raises(CommandError, match="not certificates"):
        call_command(*words, "--ca-bundle", str(path), stdout=io.StringIO())


def test_an_author_gives_it_to_diagnose_server(authority, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text(authority.bundle)
    with raw_server(tls=authority.context_for(tmp_path), capabilities={}) as server:
        text, status = diagnose_server(server.url)
        assert status == 2
        assert "give its certificate with --ca-bundle." in text
        text, status = diagnose_server(server.url, "--ca-bundle", str(path))
        assert (status, "TLSv1.3. The certificate is valid until" in text) == (0, True)


@pytest.mark.parametrize(
    ("content", "words"), [(b"\xff\xfe", "not certificates in PEM"), (None, "cannot be read")]
)
def test_a_file_that_is_none_is_a_wrong_command(tmp_path, content, words):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError, match=words) as refused:
        diagnose_server("https://127.0.0.1:9/mcp", "--ca-bundle", str(path))
    assert refused.value.returncode == 2
