"""Open pages, as static/js/overview.js keeps them: a socket, and a fetch soon after each push."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Sequence

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.load.http import Http
from benchmarks.load.servers import FIRST_CHANGE

# Of static/js/overview.js.
SPREAD_SECONDS = 0.4
RETRY_FIRST_SECONDS, RETRY_LONGEST_SECONDS = 1, 30
STEP_SECONDS = 1
OPENING_SECONDS = 10

_COUNT = re.compile(rb'data-count="(\d+)"')
_VERSION = re.compile(rb'data-version="(\d+)"')


class Page:
    """One page. `seen` maps a changed count to when this page had it; `live_at` is None while the
    page is not connected or has not yet looked again since. `waited`: the seconds of each fetch."""

    def __init__(self, slug: str, session: str, http: Http, errors: Counter[str]) -> None:
        self.slug, self.seen = slug, dict[int, float]()
        self.live_at: float | None = None
        self.port = 0
        self.opened_at: list[float] = []
        self.waited: list[float] = []
        self._session, self._http, self._errors = session, http, errors
        self._version, self._etag = 0, ""
        self._is_wanted = False
        self._open_since: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._spread: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Keep the page open until cancelled."""
        attempts = 0
        while True:
            self._open_since = None
            with contextlib.suppress(OSError, TimeoutError, WebSocketException):
                await self._listen()
            self.live_at, since = None, self._open_since
            if since is not None and time.monotonic() - since > RETRY_LONGEST_SECONDS:
                attempts = 0
            pause = random.random() * min(RETRY_LONGEST_SECONDS, RETRY_FIRST_SECONDS * 2**attempts)
            attempts += 1
            # The page's script looks once a second.
            await asyncio.sleep(pause + random.random() * STEP_SECONDS)

    async def _listen(self) -> None:
        for port in self._http.ports():
            with contextlib.suppress(ConnectionRefusedError):
                return await self._listen_at(port)

    async def _listen_at(self, port: int) -> None:
        opening = connect(
            f"ws://127.0.0.1:{port}/ws/w/{self.slug}/",
            origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
            additional_headers={"Cookie": f"overview_session={self._session}"},
            proxy=None,
            open_timeout=OPENING_SECONDS,
            ping_interval=None,
        )
        async with opening as socket:
            self._open_since, self.port = time.monotonic(), port
            self.opened_at.append(self._open_since)
            self._refresh()
            async for text in socket:
                self._hear(json.loads(text))
            if socket.close_code in (4401, 4403):
                self._errors[f"socket closed with {socket.close_code}"] += 1

    def _hear(self, message: dict) -> None:
        if message["version"] > self._version and self._spread is None:
            delay = random.random() * SPREAD_SECONDS
            self._spread = asyncio.get_running_loop().call_later(delay, self._after_spread)

    def _after_spread(self) -> None:
        self._spread = None
        self._refresh()

    def _refresh(self) -> None:
        """One fetch at a time, and at most one waiting behind it."""
        self._is_wanted = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch_all())

    async def _fetch_all(self) -> None:
        while self._is_wanted:
            self._is_wanted = False
            try:
                await self._fetch()
            except (OSError, TimeoutError) as error:
                self._errors[f"panel: {type(error).__name__}"] += 1

    async def _fetch(self) -> None:
        asked = time.monotonic()
        answer = await self._http.get(f"/w/{self.slug}/panel/", self._session, self._etag)
        now = time.monotonic()
        self.waited.append(now - asked)
        self.live_at = self.live_at or now
        if answer.status == 200:
            self._etag = answer.etag
            found = _VERSION.search(answer.body)
            assert found is not None
            self._version = int(found[1])
            for count in map(int, _COUNT.findall(answer.body)):
                if count >= FIRST_CHANGE:
                    self.seen.setdefault(count, now)
        elif answer.status != 304:
            self._errors[f"panel: {answer.status}"] += 1


async def all_live(pages: Sequence[Page], seconds: float) -> float | None:
    """Wait until every page is live; when the last one was, None if that took too long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not all(page.live_at for page in pages):
                await asyncio.sleep(0.05)
            return max(page.live_at or 0 for page in pages)
    return None
