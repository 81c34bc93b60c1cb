"""Signing in to a server in a real browser: out to another site and back, by real processes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.place import Place
from tests.servers.authorization import authorization_server

pytestmark = pytest.mark.browser

SOON = 20_000


def test_an_admin_signs_in_to_a_server_and_comes_back_to_it_ready(place: Place):
    with authorization_server() as server:
        assert place.connect("Mail", server.url)["status"] == "reconnection_needed"
        page = place.open(path="connectors/mail/")
        page.get_by_role("region", name="The server wants").get_by_role("button").click()
        # The content security policy lets the form lead out, and the person sees where to.
        expect(page.get_by_text("You are signed in to Mail.")).to_be_visible(timeout=SOON)
        assert page.url == place.url("connectors/mail/")
        page.wait_for_function(
            "fetch(location.href).then(r => r.text()).then(t => /Ready/.test(t))", timeout=SOON
        )
        assert place.connectors()["mail"] == "ready"
        assert len(server.asked("/authorize")) == 1
