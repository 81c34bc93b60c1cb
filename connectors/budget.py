"""The budget of resource reads: one per calling connector and workspace, shared by all processes.

Shell around the `limits` library: in memory in the embedded default, in Redis otherwise.
Source: Resource Arguments, "Errors" (rate_limited); D-R2.
"""

from __future__ import annotations

import logging
import math
from functools import lru_cache

from django.conf import settings
from limits import RateLimitItem, RateLimitItemPerSecond, parse
from limits.storage import storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter

logger = logging.getLogger(__name__)


def grant(workspace_id: int, connector_id: int, reads: int) -> int:
    """Take as many of the reads as the budget of a calling connector still covers; how many.

    The first of them, in the order of the call. Those that it does not cover cost nothing.
    """
    limiter = _limiter(settings.REDIS_URL)
    item = _item(settings.RESOURCE_BUDGET, settings.RESOURCE_BUDGET_BURST)
    key = ("resource-reads", str(workspace_id), str(connector_id))
    try:
        if limiter.hit(item, *key, cost=reads):
            return reads
        granted = 0
        while granted < reads and limiter.hit(item, *key):
            granted += 1
    except Exception as error:
        # Without its store the limit cannot be kept, and a caller is told to try again later.
        logger.error("The resource budget is out of reach", extra={"error": type(error).__name__})
        return 0
    return granted


@lru_cache(maxsize=4)
def _limiter(redis_url: str) -> SlidingWindowCounterRateLimiter:
    storage = storage_from_string(redis_url or "memory://")
    return SlidingWindowCounterRateLimiter(storage)


@lru_cache(maxsize=4)
def _item(budget: str, burst: int) -> RateLimitItem:
    """A burst of 1 000 at 100 a second is what ten seconds allow together."""
    rate = parse(budget)
    if burst <= rate.amount:
        return rate
    seconds = math.ceil(burst * rate.get_expiry() / rate.amount)
    return RateLimitItemPerSecond(burst, seconds)
