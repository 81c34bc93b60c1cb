"""The websocket of an open page: access, a tick, and "something changed". Never data."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from weakref import WeakSet

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings

from overview.looks import Page, Place, Refusal, Together, look, versions
from workspaces.push import group_of

TICK_SECONDS = 30
TOGETHER_SECONDS = 1
"""Ticks that are due so close together look together."""
TRY_AGAIN = 1011

looks = Together(look)
newest = Together(versions)
open_sockets: WeakSet[OverviewConsumer] = WeakSet()
"""Those of this process. One that broke without a goodbye leaves when it is collected."""


class OverviewConsumer(AsyncJsonWebsocketConsumer):
    """Serves `/ws/w/<slug>/`.

    Sends `{"type": "panel.changed", "version"}` for each change and `{"type": "tick", "version"}`
    each 30 s. Closes with 4401 when the session ended and 4403 when the person is no member, which
    a workspace that does not exist answers too. A database that is away closes no open socket: the
    next tick looks again.
    """

    _group: str | None = None
    _ticking: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """As Channels does, but without a thread's turn to close connections to the database: no
        handler here has one."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        open_sockets.add(self)
        place = await self._look()
        if isinstance(place, Place):
            await self._join(place.workspace_id)
        elif place is None:
            await self.close(code=TRY_AGAIN)

    async def _join(self, workspace_id: int) -> None:
        self._group = group_of(workspace_id)
        await self.channel_layer.group_add(self._group, self.channel_name)
        # What changed before the group was joined was pushed to others only.
        version = await newest.ask(workspace_id)
        if version is None:
            return await self.close(code=TRY_AGAIN)
        await self._send_tick(version)
        self._ticking = asyncio.create_task(self._tick())

    async def disconnect(self, code: int) -> None:
        open_sockets.discard(self)
        if self._ticking is not None:
            self._ticking.cancel()
        if self._group is not None:
            await self.channel_layer.group_discard(self._group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """Pages have nothing to say; what arrives is ignored, whatever it is."""

    async def panel_changed(self, event: dict[str, Any]) -> None:
        await self.send_json(event)

    async def access_changed(self, event: dict[str, Any]) -> None:
        await self._look()

    async def _tick(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                now = asyncio.get_running_loop().time()
                await asyncio.sleep(TICK_SECONDS - now % TOGETHER_SECONDS)
                place = await self._look()
                if isinstance(place, Refusal):
                    return
                if place is not None:
                    await self._send_tick(place.version)

    async def _send_tick(self, version: int) -> None:
        await self.send_json({"type": "tick", "version": version})

    async def _look(self) -> Place | Refusal | None:
        """Where the page is, looked up anew, or None when nobody knows. A refusal closes it."""
        session_key = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
        slug = self.scope["url_route"]["kwargs"]["slug"]
        found = await looks.ask(Page(session_key, slug))
        if isinstance(found, Refusal):
            await self.close(code=found)
        return found
