"""A websocket of a signed-in browser, against the whole ASGI application."""

from __future__ import annotations

import json

from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from overview.asgi import application

WAIT_SECONDS = 5


class Socket:
    def __init__(self, session_key, slug="acme", origin="http://localhost"):
        headers = [
            (b"cookie", f"{settings.SESSION_COOKIE_NAME}={session_key}".encode()),
            (b"origin", origin.encode()),
            (b"host", b"localhost"),
        ]
        path = f"/ws/w/{slug}/"
        self._peer = ApplicationCommunicator(
            application,
            {
                "type": "websocket",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "headers": headers,
                "subprotocols": [],
            },
        )

    async def open(self):
        """Knock; True when the socket was accepted."""
        await self._peer.send_input({"type": "websocket.connect"})
        return (await self._peer.receive_output(WAIT_SECONDS))["type"] == "websocket.accept"

    async def said(self):
        """The next message, or the code with which the socket was closed."""
        output = await self._peer.receive_output(WAIT_SECONDS)
        return json.loads(output["text"]) if output["type"] == "websocket.send" else output["code"]

    async def is_silent(self):
        """Whether nothing is said for a moment."""
        return await self._peer.receive_nothing(0.2)

    async def say(self, text):
        await self._peer.send_input({"type": "websocket.receive", "text": text})

    async def close(self):
        await self._peer.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._peer.wait(WAIT_SECONDS)
