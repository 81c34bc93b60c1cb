"""Tell open pages that something changed: never what, only that, and a version.

Low in the tree, so that every app may push. A lost message costs nothing: a page that reconnects
fetches, and the version tells an old message from a new one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction
from django.db.models import F

from workspaces.background import background
from workspaces.models import Workspace

logger = logging.getLogger(__name__)

_web_loop: asyncio.AbstractEventLoop | None = None


def deliver_on(loop: asyncio.AbstractEventLoop | None) -> None:
    """Send from this loop. The in-memory layer's queues may be touched by the web server's only."""
    global _web_loop
    _web_loop = loop


def group_of(workspace_id: int) -> str:
    """The channel group of a workspace's open pages."""
    return f"workspace.{workspace_id}"


def panel_changed(workspace_id: int) -> None:
    """Count one more change of the panel, and say so to its open pages after the commit."""
    Workspace.objects.filter(pk=workspace_id).update(panel_version=F("panel_version") + 1)
    transaction.on_commit(lambda: _poke(workspace_id, "panel.changed"))


def access_changed(workspace_id: int) -> None:
    """Make the open pages of a workspace look again whether they may stay, after the commit."""
    transaction.on_commit(lambda: _poke(workspace_id, "access.changed"))


def _poke(workspace_id: int, kind: str) -> None:
    message: dict[str, Any] = {"type": kind}
    if kind == "panel.changed":
        version = Workspace.objects.filter(pk=workspace_id).values_list("panel_version", flat=True)
        message["version"] = version.first()
        if message["version"] is None:
            return  # The workspace has just gone, and its pages with it.
    sending = _send(group_of(workspace_id), message)
    if _web_loop is not None and _web_loop.is_running():
        asyncio.run_coroutine_threadsafe(sending, _web_loop)
    else:
        background().submit(sending)


async def _send(group: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    assert layer is not None
    for is_last in (False, True):
        try:
            await layer.group_send(group, message)
            return
        except Exception:
            # After a restart of Redis the layer's first send fails once and the next one works.
            if is_last:
                logger.warning("A change could not be pushed", extra={"group": group})
