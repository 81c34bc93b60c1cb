"""The websocket of an open page: access, a tick, and "something changed". Never data."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from weakref import WeakSet

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.contrib.auth import get_user
from django.http import HttpRequest

from workspaces.access import is_signed_in, member_of
from workspaces.actions import keep_watched
from workspaces.models import Workspace
from workspaces.push import group_of

TICK_SECONDS = 30
SIGNED_OUT = 4401
NO_ACCESS = 4403

open_sockets: WeakSet[OverviewConsumer] = WeakSet()
"""Those of this process. One that broke without a goodbye leaves when it is collected."""


class OverviewConsumer(AsyncJsonWebsocketConsumer):
    """Serves `/ws/w/<slug>/`.

    Sends `{"type": "panel.changed", "version"}` for each change and `{"type": "tick", "version"}`
    each 30 s. Closes with 4401 when the session ended and 4403 when the person is no member, which
    a workspace that does not exist answers too.
    """

    _group: str | None = None
    _ticking: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        open_sockets.add(self)
        workspace = await self._workspace()
        if workspace is None:
            return
        self._group = group_of(workspace.pk)
        await self.channel_layer.group_add(self._group, self.channel_name)
        # What changed before the group was joined was pushed to others only.
        await workspace.arefresh_from_db(fields=["panel_version"])
        await self._send_tick(workspace)
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
        await self._workspace()

    async def _tick(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(TICK_SECONDS)
                workspace = await self._workspace()
                if workspace is None:
                    return
                await self._send_tick(workspace)

    async def _send_tick(self, workspace: Workspace) -> None:
        await self.send_json({"type": "tick", "version": workspace.panel_version})

    async def _workspace(self) -> Workspace | None:
        """The workspace, looked up anew and kept watched; else None, and the socket is closed."""
        found = await database_sync_to_async(self._look)()
        if isinstance(found, Workspace):
            return found
        await self.close(code=found)
        return None

    def _look(self) -> Workspace | int:
        """The workspace, or the code to close with. In one turn of a thread: a thousand pages look
        each half minute, and all at once after a restart."""
        session = self.scope["session"]
        # The session was read when the socket opened: ask the store whether it still is.
        if not session.session_key or not session.exists(session.session_key):
            return SIGNED_OUT
        request = HttpRequest()
        request.session = session
        user = get_user(request)
        member = member_of(user, self.scope["url_route"]["kwargs"]["slug"])
        if member is None:
            return NO_ACCESS if is_signed_in(user) else SIGNED_OUT
        keep_watched(member.workspace)
        return member.workspace
