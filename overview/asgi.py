"""One ASGI application: the site, its websockets, the MCP endpoint, and the lifespan of both."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")
django_application = get_asgi_application()

# Django has to be set up before these.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import path  # noqa: E402

from connectors.endpoint import McpEndpoint  # noqa: E402
from connectors.runtime import close_runtime  # noqa: E402
from overview.consumers import OverviewConsumer  # noqa: E402
from workspaces.push import deliver_on  # noqa: E402

# Typed loosely: the stubs know neither Django's path() around a consumer nor plain scopes.
_socket: Any = OverviewConsumer.as_asgi()
_sockets: Any = [path("ws/w/<slug:slug>/", _socket)]
_site: Any = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(_sockets))),
    }
)
endpoint = McpEndpoint()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Dispatch by the kind of connection; Channels itself knows nothing of lifespan."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif endpoint.serves(scope):
        await endpoint(scope, receive, send)
    else:
        await _site(scope, receive, send)


async def _lifespan(receive: Any, send: Any) -> None:
    await receive()
    deliver_on(asyncio.get_running_loop())
    await endpoint.start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await endpoint.stop()
    deliver_on(None)
    await asyncio.to_thread(close_runtime)
    await send({"type": "lifespan.shutdown.complete"})
