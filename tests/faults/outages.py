"""What was broken when, and whether that explains a request that was refused."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError

LIVE_SECONDS = 10
"""After something is mended: all that needs it is served again."""
RECONNECTED_SECONDS = 60
"""After that: servers that were cut are ready again. The first retry of one comes after 15 to 30 s,
the second after up to a minute (requirements 4.1)."""

WEB, DATABASE, SERVER = "(kill|stop) web", "(stop|crash) postgres", "cut server0"
NEEDS = {
    "no answer": (WEB, LIVE_SECONDS),
    "HTTP 500": (DATABASE, LIVE_SECONDS),
    "The host could not answer.": (DATABASE, LIVE_SECONDS),
    "not ready": (SERVER, RECONNECTED_SECONDS),
    "closed": (SERVER, LIVE_SECONDS),
    "unreachable": (SERVER, LIVE_SECONDS),
}
"""Why a request may be refused: the fault that has to last, or to be over for so many seconds at
most."""


@dataclass(frozen=True)
class Refusal:
    """A request that was not served. why: a key of NEEDS, or whatever else was said."""

    why: str
    asked_at: float
    answered_at: float


@dataclass
class Outage:
    """Something that is broken, named as its fault: "cut server0"."""

    name: str
    began_at: float
    ended_at: float | None = None

    def explains(self, refusal: Refusal) -> bool:
        fault, seconds = NEEDS.get(refusal.why, ("nothing", 0))
        is_over = self.ended_at is not None and refusal.asked_at > self.ended_at + seconds
        has_begun = self.began_at <= refusal.answered_at
        return bool(re.match(fault, self.name)) and has_begun and not is_over


@dataclass
class Outages:
    """Everything that was broken in a run."""

    all: list[Outage] = field(default_factory=list)

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Note one. It is over when what was broken is told to come back."""
        outage = Outage(name, time.time())
        self.all.append(outage)
        try:
            yield
        finally:
            outage.ended_at = time.time()

    def explain(self, refusals: Iterable[Refusal]) -> tuple[Counter[str], list[Refusal]]:
        """How many refusals came of what, and those that nothing explains."""
        found: Counter[str] = Counter()
        unexplained = []
        for refusal in refusals:
            causes = [outage.name for outage in self.all if outage.explains(refusal)]
            if causes:
                found[f"{refusal.why} ({causes[-1]})"] += 1
            else:
                unexplained.append(refusal)
        return found, unexplained


def why(error: Exception) -> str:
    """Of a request that was not answered well."""
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    return "no answer" if isinstance(error, OSError) else type(error).__name__


def why_refused(said: dict[str, Any]) -> str:
    """Of a tool call that was answered."""
    if "error" in said:
        return str(said["error"]["message"])
    result = said["result"]
    fault = result.get("_meta", {}).get("ai.nimblebrain/fault")
    if fault is not None:
        return str(fault["kind"])
    text = str(result["content"][0]["text"])
    return "not ready" if " is not ready: Failed" in text else text or json.dumps(result)
