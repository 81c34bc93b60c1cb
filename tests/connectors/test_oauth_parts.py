"""The pure parts of signing in: challenges, token answers, and whom secrets may be sent to."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

import pytest

from connectors.oauth.metadata import is_secure, parse_resource
from connectors.oauth.tokens import (
    Client,
    Refusal,
    Tokens,
    client_of,
    parse_answer,
    token_request,
)
from connectors.protocol.challenges import Challenge, clean_scope, missing_scope, parse_challenge

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
EVERY_METHOD = ("client_secret_basic", "client_secret_post", "none")


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        (None, Challenge()),
        ("", Challenge()),
        ("Bearer", Challenge()),
        ('Bearer scope="a b a"', Challenge(scope="a b")),
        ("bearer scope=a", Challenge(scope="a")),
        ('BEARER error = "x" , SCOPE="a"', Challenge(error="x", scope="a")),
        (r'Bearer error="say \"no\", twice"', Challenge(error='say "no", twice')),
        ('Basic realm="r", Bearer scope="a"', Challenge(scope="a")),
        ('Bearer scope="a", Basic scope="b"', Challenge(scope="a")),
        ('DPoP error="x", scope="b"', Challenge()),
        (
            'Bearer resource_metadata="https://a/.well-known/x?y=1,2"',
            Challenge(resource_metadata="https://a/.well-known/x?y=1,2"),
        ),
        ('Bearer scope="a", scope="b"', Challenge(scope="a")),
        ('Bearer scope="a', Challenge()),
        (",,, = Bearer", Challenge()),
    ],
)
def test_a_challenge_is_read_as_rfc_9110_writes_it(header, challenge):
    assert parse_challenge(header) == challenge


def test_a_challenge_of_any_length_is_read_in_a_moment():
    for piece in ('"\\', "a=", "Bearer ", 'a="b", ', "=", "\\\\"):
        parse_challenge("Bearer " + piece * 20_000)


def test_only_insufficient_scope_is_a_missing_one():
    assert missing_scope('Bearer error="insufficient_scope", scope="a b"') == "a b"
    assert missing_scope('Bearer error="insufficient_scope"') == ""
    assert missing_scope('Bearer error="invalid_token", scope="a"') is None


@pytest.mark.parametrize("scope", [None, 3, ["a"], 'a"b', "a\\b", "ä", "\n"])
def test_what_is_no_scope_is_left_out(scope):
    assert clean_scope(scope) == ""


@pytest.mark.parametrize(
    ("seconds", "life"),
    [
        (3600, 3600),
        ("3600", 3600),
        (59.5, 59.5),
        (0, 0),
        (None, None),
        (-1, None),
        ("soon", None),
        (float("nan"), None),
        (10**400, None),
        (1e300, 10 * 366 * 24 * 3600),
    ],
)
def test_how_long_a_token_lives(seconds, life):
    tokens = parse_answer({"access_token": "x", "expires_in": seconds}, NOW)
    assert isinstance(tokens, Tokens)
    assert tokens.expires_at == (None if life is None else NOW + timedelta(seconds=life))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"access_token": ""},
        {"access_token": 7},
        {"access_token": "a\r\nX: y"},
        {"access_token": "ä"},
        {"access_token": "x" * 20_000},
        {"access_token": "x", "token_type": "N_A"},
        {"access_token": "x", "token_type": None},
    ],
)
def test_what_is_no_token_is_none(value):
    assert parse_answer(value, NOW) is None


def test_a_refusal_is_short_and_in_one_line():
    said = {"error": "invalid_grant\n", "error_description": "a\u202eb\n" + "c" * 999}
    refusal = parse_answer(said, NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.is_final
    assert refusal.description.startswith("ab c")
    assert len(refusal.description) == 200


def test_a_bad_refresh_token_is_no_token():
    tokens = parse_answer({"access_token": "x", "refresh_token": "a b", "scope": " "}, NOW)
    assert isinstance(tokens, Tokens)
    assert (tokens.refresh_token, tokens.scope) == (None, None)


@pytest.mark.parametrize(
    ("secret", "methods", "assigned", "method"),
    [
        ("s", EVERY_METHOD, None, "client_secret_basic"),
        ("s", ("client_secret_post",), None, "client_secret_post"),
        ("s", ("private_key_jwt",), None, None),
        ("s", EVERY_METHOD, "client_secret_post", "client_secret_post"),
        ("s", EVERY_METHOD, "private_key_jwt", None),
        ("s", EVERY_METHOD, "none", None),
        (None, ("client_secret_basic",), None, "none"),
        (None, EVERY_METHOD, "client_secret_basic", None),
    ],
)
def test_how_a_client_proves_itself(secret, methods, assigned, method):
    client = client_of("id", secret, methods, assigned)
    assert (client and client.method) == method


def test_a_basic_secret_is_encoded_before_it_is_joined():
    headers, body = token_request(Client("a:b", "c d/é", "client_secret_basic"), {"x": "1"})
    pair = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == "a%3Ab:c%20d%2F%C3%A9"
    assert dict(parse_qsl(body.decode())) == {"x": "1", "client_id": "a:b"}


def test_a_posted_secret_is_in_the_body_alone():
    headers, body = token_request(Client("a", "s", "client_secret_post"), {})
    assert "authorization" not in headers
    assert dict(parse_qsl(body.decode())) == {"client_id": "a", "client_secret": "s"}


def test_a_client_shows_no_secret_and_survives_storing():
    client = Client("a", "planted", "client_secret_post")
    assert "planted" not in repr(client)
    assert Client.from_json(client.to_json()) == client


@pytest.mark.parametrize(
    ("url", "is_ok"),
    [
        ("https://auth.example.com/a?b=c", True),
        ("http://auth.example.com", False),
        ("http://127.0.0.1:8080/x", True),
        ("http://localhost/x", True),
        ("http://[::1]/x", True),
        ("http://10.0.0.1/x", False),
        ("http://127.0.0.1.example.com/", False),
        ("https://user:pw@auth.example.com/", False),
        ("https://auth.example.com/#x", False),
        ("https://", False),
        ("https://[::1", False),
        ("https://auth.example.com:x/", False),
        ("https://auth.example.com/\r\nX: y", False),
        ("ftp://auth.example.com", False),
        ("//auth.example.com", False),
        (None, False),
        (7, False),
        ("https://a/" + "x" * 3000, False),
    ],
)
def test_where_people_and_secrets_may_be_sent(url, is_ok):
    assert is_secure(url, lambda address: address.is_loopback) is is_ok


def test_this_machine_is_out_of_bounds_unless_it_is_allowed():
    assert not is_secure("http://127.0.0.1/x", lambda _: False)


@pytest.mark.parametrize(
    ("identifier", "is_about"),
    [
        ("https://mcp.example.com/a/mcp", True),
        ("https://mcp.example.com/a", True),
        ("https://mcp.example.com", True),
        ("https://mcp.example.com/a/mcp/b", False),
        ("https://mcp.example.com/a/m", False),
        ("https://example.com/a/mcp", False),
        ("http://mcp.example.com/a/mcp", False),
        ("https://mcp.example.com:8443/a/mcp", False),
        ("https://[", False),
    ],
)
def test_metadata_must_be_about_the_connectors_address(identifier, is_about):
    value = {"resource": identifier, "authorization_servers": ["https://auth.example.com"]}
    found = parse_resource(value, "https://mcp.example.com/a/mcp")
    assert hasattr(found, "identifier") is is_about


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"resource": "https://mcp.example.com"},
        {"resource": 1, "authorization_servers": ["https://a"]},
        {"resource": "https://mcp.example.com", "authorization_servers": []},
        {"resource": "https://mcp.example.com", "authorization_servers": [1, None, ""]},
        {"resource": "https://mcp.example.com", "authorization_servers": "https://a"},
    ],
)
def test_what_is_no_resource_metadata_is_none(value):
    assert parse_resource(value, "https://mcp.example.com/") is None
