"""One ASGI application: the site, its websockets, the MCP endpoint, and the lifespan of both."""

from __future__ import annotations

import asyncio
import os
import warnings
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")
# WhiteNoise answers with files; reading one in a thread is what Django should do with them.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
django.setup(set_prefix=False)

# Django has to be set up before these.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from channels.sessions import CookieMiddleware  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import get_resolver, path  # noqa: E402

from connectors.endpoint import McpEndpoint  # noqa: E402
from connectors.runtime import close_runtime  # noqa: E402
from overview.bodies import bounded  # noqa: E402
from overview.consumers import OverviewConsumer, open_sockets  # noqa: E402
from overview.garbage import settle_collector  # noqa: E402
from overview.operators import tracing  # noqa: E402
from overview.operators.probes import Probes  # noqa: E402
from overview.operators.stopping import Stopping  # noqa: E402
from overview.turns import TurnsHandler  # noqa: E402
from workspaces import tallies  # noqa: E402
from workspaces.background import run_background_on  # noqa: E402
from workspaces.push import deliver_on  # noqa: E402

django_application = TurnsHandler(settings.WEB_THREADS)
# Not by the first request: after a restart all open pages would wait for it at once.
_ = get_resolver().url_patterns

# Typed loosely: the stubs know neither Django's path() around a consumer nor plain scopes.
_socket: Any = OverviewConsumer.as_asgi()
_sockets: Any = [path("ws/w/<slug:slug>/", _socket)]
_site: Any = ProtocolTypeRouter(
    {
        "http": bounded(django_application),
        "websocket": AllowedHostsOriginValidator(CookieMiddleware(URLRouter(_sockets))),
    }
)
endpoint = McpEndpoint()
stopping = Stopping()
probes = Probes(stopping)
settle_collector()

TALLY_SECONDS = 10
"""How often a web process says how many pages it has open, and what it has counted."""


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Dispatch by the kind of connection; Channels itself knows nothing of lifespan."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif probes.serves(scope):
        await probes(scope, receive, send)
    elif endpoint.serves(scope):
        await tracing.endpoint_spans(endpoint, scope, receive, send)
    else:
        await _site(scope, receive, send)


async def _lifespan(receive: Any, send: Any) -> None:
    await receive()
    loop = asyncio.get_running_loop()
    # What ran in this process before, a command say, had a loop of its own.
    await asyncio.to_thread(close_runtime)
    run_background_on(loop)
    deliver_on(loop)
    await endpoint.start()
    tallying = asyncio.create_task(_tally())
    stopping.hold_back(settings.WEB_DRAIN_SECONDS)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    tallying.cancel()
    await endpoint.stop()
    await asyncio.to_thread(tallies.flush, {"open_sockets": 0})
    deliver_on(None)
    await asyncio.to_thread(close_runtime)
    run_background_on(None)
    await asyncio.to_thread(tracing.flush)
    await send({"type": "lifespan.shutdown.complete"})


async def _tally() -> None:
    while True:
        await asyncio.to_thread(tallies.flush, {"open_sockets": len(open_sockets)})
        await asyncio.sleep(TALLY_SECONDS)
