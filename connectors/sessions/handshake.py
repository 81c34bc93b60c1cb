"""Settling the era with a server, and reading what it says of itself, tolerantly."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from connectors.sessions.faults import Peer, fault
from connectors.sessions.jsonrpc import is_clean
from connectors.sessions.values import Connected, FaultKind, Target
from connectors.sessions.wire import DISCOVER, Wire, essentials


async def negotiate(session: ClientSession, wire: Wire, target: Target) -> Connected:
    """Settle the era: by an earlier discovery without any request, else by the SDK's probe.

    Raises: WireFault.
    """
    discovery = target.discovery
    if discovery is not None and (known := _known(discovery)) is not None:
        session.adopt(types.DiscoverResult.model_validate(essentials(DISCOVER, known)))
        return connected(session, known, wire.peer)
    try:
        await (session.initialize() if target.is_of_2025 else negotiate_auto(session))
    except MCPError as error:
        refused = wire.peer.text(error.error.message) or "no reason given"
        raise fault(
            FaultKind.PROTOCOL, f"The server refused to open a session: {refused}"
        ) from None
    except (ValidationError, RuntimeError):
        raise fault(
            FaultKind.PROTOCOL, "The server speaks no revision of MCP that this host knows."
        ) from None
    return connected(session, wire.handshake, wire.peer)


async def rediscover(session: ClientSession, wire: Wire) -> Connected:
    """Ask a server of the modern era again what it is: its only sign of life without effect.

    Raises: MCPError, WireFault.
    """
    assert session.protocol_version is not None
    await session.send_discover(session.protocol_version)
    return connected(session, wire.handshake, wire.peer)


def connected(session: ClientSession, raw: dict[str, Any], peer: Peer) -> Connected:
    """raw: the answer to the probe or to `initialize`, as sent."""
    is_modern = session.discover_result is not None
    info = _object(raw, "_meta").get(SERVER_INFO_META_KEY) if is_modern else raw.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    kept = {
        name: value
        for name, value in _object(raw, "capabilities").items()
        if is_clean({name: value})
    }
    name, version = peer.text(info.get("name")), peer.text(info.get("version"), 100)
    discovery = {
        "supportedVersions": raw.get("supportedVersions"),
        "capabilities": kept,
        "_meta": {SERVER_INFO_META_KEY: {"name": name, "version": version}},
    }
    return Connected(
        revision=session.protocol_version or "",
        server_name=name,
        server_version=version,
        capabilities=kept,
        discovery=json.dumps(discovery) if is_modern else None,
    )


def _object(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _known(discovery: str) -> dict[str, Any] | None:
    """A discovery that was kept, if this version of the host can still use it."""
    try:
        known = json.loads(discovery)
        versions = set(known["supportedVersions"])
    except (ValueError, KeyError, TypeError):
        return None
    return known if versions & set(MODERN_PROTOCOL_VERSIONS) else None
