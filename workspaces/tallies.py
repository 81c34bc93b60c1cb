"""How often things happened, for operators: counted in memory, added up where all processes can.

`count` and `observe` only touch memory; `flush` sends what has gathered in one go, at the end of a
task or of a batch. With Redis the sums are kept there, so any process may be asked for them and a
restart loses none; without it the one process of the host keeps them.
Low in the tree, so that every app may count. Labels are of our own making and few: never a name,
an address or an id. Nothing in here fails or is worth failing for.
Why so: docs/decisions/metrics.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from uuid import uuid4

import redis
from django.conf import settings

logger = logging.getLogger(__name__)

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of a histogram's buckets, in seconds."""
LEVEL_LASTS_SECONDS: Final = 30
"""What a process said of itself last is believed for so long: a killed one says nothing more."""
PAUSE_SECONDS: Final = 5
"""After Redis did not answer, before it is tried again; counting goes on in memory."""

_SUMS, _LEVELS = "overview:tallies", "overview:levels"

_lock = threading.Lock()
_pending: Counter[str] = Counter()
_sums: Counter[str] = Counter()
_levels: dict[str, float] = {}
_paused_until = 0.0
_process = uuid4().hex


def count(name: str, label: str = "", amount: float = 1) -> None:
    """Count something that happened. Costs nothing while metrics are off."""
    if settings.METRICS_TOKEN:
        with _lock:
            _pending[f"{name}|{label}"] += amount  # type: ignore[assignment]


def observe(name: str, seconds: float) -> None:
    """Count a duration into its histogram."""
    bound = next((str(each) for each in BUCKETS if seconds <= each), "+Inf")
    count(f"{name}_bucket", bound)
    count(f"{name}_sum", "", seconds)


def flush(levels: Mapping[str, float] | None = None) -> None:
    """Send on what this process has counted. levels: what it has just now, e.g. open sockets."""
    global _pending, _paused_until
    if not settings.METRICS_TOKEN:
        return
    with _lock:
        taken, _pending = _pending, Counter()
    try:
        if time.monotonic() < _paused_until:
            raise redis.ConnectionError
        _send(taken, levels or {})
    except redis.RedisError as error:
        with _lock:
            _pending.update(taken)
        if time.monotonic() >= _paused_until:
            _paused_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("Metrics wait for Redis", extra={"error": type(error).__name__})


def _send(taken: Counter[str], levels: Mapping[str, float]) -> None:
    if not settings.REDIS_URL:
        with _lock:
            _sums.update(taken)
            _levels.update(levels)
        return
    if not taken and not levels:
        return
    now = time.time()
    with _client(settings.REDIS_URL).pipeline(transaction=True) as pipe:
        for field, amount in taken.items():
            pipe.hincrbyfloat(_SUMS, field, amount)
        for name, level in levels.items():
            pipe.hset(_LEVELS, f"{name}|{_process}", f"{level} {now}")
        pipe.execute()


def sums() -> dict[tuple[str, str], float]:
    """All that was ever counted and sent, by name and label.

    Raises: redis.RedisError.
    """
    if not settings.REDIS_URL:
        with _lock:
            return {_key(field): amount for field, amount in _sums.items()}
    stored: dict[bytes, bytes] = _client(settings.REDIS_URL).hgetall(_SUMS)  # type: ignore[assignment]
    return {_key(field.decode()): float(amount) for field, amount in stored.items()}


def level(name: str) -> float:
    """A level, added up over the processes that have spoken lately.

    Raises: redis.RedisError.
    """
    if not settings.REDIS_URL:
        return _levels.get(name, 0)
    client, now, total = _client(settings.REDIS_URL), time.time(), 0.0
    stored: dict[bytes, bytes] = client.hgetall(_LEVELS)  # type: ignore[assignment]
    for field, said in stored.items():
        amount, at = map(float, said.split())
        if now - at > LEVEL_LASTS_SECONDS:
            client.hdel(_LEVELS, field.decode())
        elif _key(field.decode())[0] == name:
            total += amount
    return total


def _key(field: str) -> tuple[str, str]:
    name, _, label = field.partition("|")
    return name, label


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)
