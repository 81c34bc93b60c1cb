"""What a request may be: how large, for which host, from which page; and how it is answered."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as configured
from django.test import Client
from django.urls import get_resolver

from overview.bodies import MAX_BODY_BYTES, bounded
from overview.stores import JsonSerializer
from tests.connectors.outside import site_on_a_port

SIGNED_IN = [
    "/workspaces/",
    "/account/",
    "/account/connectors/",
    "/account/connectors/add/",
    "/w/acme/",
    "/w/acme/panel/",
    "/w/acme/attention.json",
    "/w/acme/connectors/",
    "/w/acme/connectors/add/",
    "/w/acme/members/",
    "/w/acme/settings/",
    "/w/acme/settings/appearance/",
    "/w/acme/tokens/",
    "/w/acme/audit/",
    "/w/acme/tools/",
    "/w/acme/traces/",
    "/w/acme/overlaps/",
    "/w/nowhere/",
]


# --- Bodies ------------------------------------------------------------------------------------


async def keep_all(scope, receive, send):
    """As Django does: read the whole body, then answer."""
    kept = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        kept += len(message["body"])
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(kept).encode()})


def post(chunks, headers=()):
    async def go():
        scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        peer = ApplicationCommunicator(bounded(keep_all, 100), scope)
        for index, chunk in enumerate(chunks):
            more = index < len(chunks) - 1
            await peer.send_input({"type": "http.request", "body": chunk, "more_body": more})
        start = await peer.receive_output(2)
        body = await peer.receive_output(2)
        await peer.wait(2)
        assert await peer.receive_nothing(0.01)
        return start["status"], body["body"]

    return asyncio.run(go())


def test_a_body_within_the_bound_arrives_as_it_is():
    assert post([b"x" * 60, b"x" * 40]) == (200, b"100")


def test_a_body_without_end_is_cut_off_at_the_bound_whoever_sends_it():
    status, _ = post([b"x" * 60] * 50)
    assert status == 413


@pytest.mark.parametrize("length", [b"101", b"9999999999999999999"])
def test_a_body_that_says_it_is_too_large_is_not_read(length):
    status, _ = post([b""], [(b"content-length", length)])
    assert status == 413


def test_nothing_of_a_stranger_is_written_to_disk(monkeypatch, transactional_db):
    """A form with a file, from somebody who is signed out, to a page that takes none."""
    written = []
    rollover = tempfile.SpooledTemporaryFile.rollover

    def noted(self):
        written.append(self)
        return rollover(self)

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", noted)
    with site_on_a_port() as site, _connected(site) as peer:
        size = MAX_BODY_BYTES + 1
        peer.sendall(
            f"POST /sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()
        )
        assert peer.recv(1000).startswith(b"HTTP/1.1 413 ")
    assert written == []


def _connected(site):
    return socket.create_connection(("127.0.0.1", int(site.rpartition(":")[2])), timeout=5)


def test_a_form_of_very_many_fields_is_refused(alice_client):
    fields = {f"field{number}": "" for number in range(2000)}
    assert alice_client.post("/w/acme/settings/", fields).status_code == 400


# --- Host, origin, redirects -------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "localhost@evil", "a b"]
)
@pytest.mark.parametrize("path", ["/sign-in/", "/w/acme/", "/oauth/client-metadata.json"])
def test_another_host_name_gets_no_page(alice_client, host, path):
    answer = alice_client.get(path, headers={"host": host})
    assert answer.status_code == 400
    assert "evil" not in answer.content.decode()


def test_a_forwarded_host_counts_only_where_a_proxy_is_trusted(alice_client):
    answer = alice_client.get("/w/acme/tokens/", headers={"x-forwarded-host": "evil.example"})
    assert "http://testserver/mcp/acme" in answer.content.decode()


ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/\t/evil.example/",
    "///evil.example",
    "http:evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    " https://evil.example",
    "https:/\\evil.example",
    "/%0d%0aLocation:https://evil.example",
    "\x00//evil.example",
]


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("page", ["/sign-in/", "/admin/login/"])
def test_signing_in_leads_to_no_other_site(alice, page, place):
    alice.is_staff = True
    alice.save()
    names = {"email": alice.email, "username": alice.email, "password": "Alice-secret-1"}
    answer = Client().post(page, {**names, "next": place})
    assert answer.status_code == 302
    location = answer["Location"]
    assert location.startswith("/")
    assert not re.match(r"/[\s\\/]", location)
    assert "\r" not in location and "\n" not in location


# --- Bytes that no database takes --------------------------------------------------------------

ODD = ["%00", "%ff%fe", "%ed%a0%80", "%0d%0aSet-Cookie:a=b", "%e2%80%ae", "9" * 400]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "address",
    [
        "/w/{}/",
        "/w/acme/app/{}",
        "/w/acme/app/x/{}/y",
        "/w/acme/connectors/{}/",
        "/w/acme/connectors/?q={}&status={}",
        "/w/acme/traces/?tool={}&before={}&seen={}&connector={}&outcome={}",
        "/w/acme/traces/newer/?seen={}",
        "/w/acme/traces/{}/",
        "/w/acme/tools/?q={}",
        "/w/acme/tools/call/?name={}",
        "/w/acme/overlaps/?uri={}",
        "/w/acme/audit/?page={}",
        "/w/acme/members/{}/",
        "/sign-in/link/{}/{}/",
        "/oauth/callback/?state={}&code={}",
        "/operators/connectors/?q={}&page={}",
    ],
)
def test_no_odd_byte_in_an_address_is_an_error_of_ours(alice, alice_client, address, odd):
    alice.is_staff = True
    alice.save()
    answer = alice_client.get(address.replace("{}", odd))
    assert answer.status_code in (200, 302, 400, 404, 410)
    assert "Set-Cookie:a" not in str(answer.headers)


# --- What every answer says --------------------------------------------------------------------


@pytest.mark.parametrize("path", SIGNED_IN)
def test_every_page_says_how_it_may_be_used(alice_client, path):
    answer = alice_client.get(path)
    policy = answer["Content-Security-Policy"]
    for directive in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
        assert directive in policy
    assert "unsafe" not in policy and "*" not in policy and "data:" not in policy
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    cached = answer["Cache-Control"]
    assert "private" in cached
    assert "no-cache" in cached or "no-store" in cached
    assert "Server" not in answer


def test_pages_for_signed_out_people_are_as_strict(db):
    answer = Client().get("/sign-in/")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]


def test_the_admin_site_needs_no_looser_policy(alice, alice_client):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    answer = alice_client.get("/admin/")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "private" in answer["Cache-Control"]


def test_only_these_addresses_ask_for_no_session():
    """Whoever adds one says so here; LoginRequiredMiddleware holds all the others."""
    open_ones = {
        str(pattern)
        for pattern, view in _views(get_resolver().url_patterns)
        if not getattr(view, "login_required", True)
    }
    assert open_ones == {
        "admin/login/",
        "oauth/client-metadata.json",
        "sign-in/",
        "sign-in/link/<str:uid>/<str:token>/",
        "sign-out/",
        # These two answer 401 themselves.
        "w/<slug:slug>/attention.json",
        "w/<slug:slug>/panel/",
    }


def _views(patterns, before=""):
    for each in patterns:
        place = before + str(each.pattern)
        if hasattr(each, "url_patterns"):
            yield from _views(each.url_patterns, place)
        else:
            yield place, each.callback


# --- Cookies and https -------------------------------------------------------------------------


def test_cookies_are_for_this_site_and_no_script(alice):
    client = Client()
    client.get("/sign-in/")
    client.post("/sign-in/", {"email": alice.email, "password": "Alice-secret-1"})
    assert {configured.SESSION_COOKIE_NAME, configured.CSRF_COOKIE_NAME} <= set(client.cookies)
    for cookie in client.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert (cookie["path"], cookie["domain"]) == ("/", "")


SETTINGS = """
import json
from overview import settings
names = [name for name in dir(settings) if name.isupper()]
plain = {name: getattr(settings, name) for name in names}
print(json.dumps(plain, default=str))
"""


def settings_with(tmp_path, **variables):
    given = {**os.environ, "VAR_DIR": str(tmp_path / "var"), **variables}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SETTINGS]
    ran = subprocess.run(
        command, cwd=root, env=given, capture_output=True, check=True, timeout=20, text=True
    )
    return json.loads(ran.stdout)


def test_over_https_cookies_belong_to_this_host_and_stay_on_https(tmp_path):
    found = settings_with(tmp_path, SECURE_SSL_REDIRECT="1")
    assert found["SESSION_COOKIE_SECURE"] and found["CSRF_COOKIE_SECURE"]
    assert found["SESSION_COOKIE_NAME"].startswith("__Host-")
    assert found["CSRF_COOKIE_NAME"].startswith("__Host-")
    assert found["SECURE_HSTS_SECONDS"] >= 31_536_000


def test_where_the_embedded_default_keeps_everything_is_its_owners_alone(tmp_path):
    settings_with(tmp_path, SECRET_KEY="", SECRETS_KEYS="", DATABASE_URL="", REDIS_URL="")
    assert (tmp_path / "var").stat().st_mode & 0o077 == 0
    for name in ("secret_key", "secrets_keys"):
        assert (tmp_path / "var" / name).stat().st_mode & 0o077 == 0


def test_http_is_sent_to_https_and_https_stays(settings, db):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    answer = Client().get("/sign-in/?next=/w/acme/")
    assert (answer.status_code, answer["Location"]) == (
        301,
        "https://testserver/sign-in/?next=/w/acme/",
    )
    assert "max-age=31536000" in Client().get("/sign-in/", secure=True)["Strict-Transport-Security"]


def test_a_clients_word_on_https_counts_only_where_a_proxy_is_trusted(settings, db):
    settings.SECURE_SSL_REDIRECT = True
    answer = Client().get("/sign-in/", headers={"x-forwarded-proto": "https"})
    assert answer.status_code == 301


def test_what_is_read_from_redis_is_not_run(tmp_path):
    found = settings_with(tmp_path, REDIS_URL="redis://127.0.0.1:9", DATABASE_URL="")
    assert found["CACHES"]["default"]["OPTIONS"]["serializer"] == "overview.stores.JsonSerializer"
    store = JsonSerializer()
    assert [store.loads(store.dumps(each)) for each in (7, 1.5, "a", None)] == [7, 1.5, "a", None]
    with pytest.raises(ValueError):
        store.loads(pickle.dumps(os.getcwd))
