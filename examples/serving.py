"""How every Python example is served: one address, one line when it listens, gone when told."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading

import uvicorn
from starlette.types import ASGIApp


def _leave(number: int, frame: object) -> None:
    # An example keeps nothing, so it need not wait for its clients' open streams.
    os._exit(0)


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: object) -> None:
        _leave(sig, frame)


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Give the two options that every example has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument(
        "--until-stdin-closes",
        action="store_true",
        help="also end when standard input ends, which it does when the starting process dies",
    )
    return parser


def serve(app: ASGIApp, options: argparse.Namespace) -> None:
    """Serve an app on loopback until SIGTERM or Ctrl-C, and say where once it listens."""
    if options.until_stdin_closes:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)  # For the moment until uvicorn takes them over.
    listener = socket.create_server(("127.0.0.1", options.port))
    port = listener.getsockname()[1]
    # The socket listens already: a request that comes before uvicorn is up waits in its queue.
    print(f"listening on http://127.0.0.1:{port}/mcp", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    _Server(config).run(sockets=[listener])


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
