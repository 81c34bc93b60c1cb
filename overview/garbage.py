"""Python's garbage collector in a process that holds many open connections.

A full collection looks at every object alive and stops all threads meanwhile: about half a second
with a thousand servers connected. By Python's own thresholds one came with every 600 reads, for
what is under way lives longer than 700 others take to be made, and so half of a worker's time went
there. Reference counting frees nearly everything anyway; the collector is for cycles.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (5_000, 20, 50)
"""Objects made, but not freed, before the young ones are looked at, and how many such looks come
before one at the next older generation."""


def settle_collector() -> None:
    """Call once, when a process that stays has everything it starts with: that is never garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
