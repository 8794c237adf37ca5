"""Ids are UUIDv7 (RFC 9562). They sort by creation time, so new rows go to the end of every index.

That time is by the clock of whoever made the id, which may be wrong by hours. So nothing is decided by it: order, age
and due times come from the database's clock.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from datetime import UTC, datetime

_lock = threading.Lock()
_last = 0
_random = b""
_used = 0


def _forget_random() -> None:
    global _random, _used
    _random, _used = b"", 0


# A child process must not use the same random bytes as its parent.
os.register_at_fork(after_in_child=_forget_random)


def new_id() -> uuid.UUID:
    """A new UUIDv7. The ids of one process always increase, even within a millisecond or when the clock steps back."""
    global _last, _random, _used
    # 48 bits of milliseconds, then 12 bits of sub-millisecond time (method 3 of RFC 9562).
    ns = time.time_ns()
    stamp = (ns // 1_000_000) << 12 | (ns % 1_000_000) * 4096 // 1_000_000
    with _lock:
        _last = stamp = max(stamp, _last + 1)
        if _used >= len(_random):
            # We get random bytes for many ids at once, because a system call per id would dominate the cost.
            _random, _used = os.urandom(8 * 256), 0
        chance = int.from_bytes(_random[_used : _used + 8], "big") >> 2
        _used += 8
    return uuid.UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | chance)


def first_id_at(moment: datetime) -> uuid.UUID:
    """The smallest id created at `moment`. All older ids sort before it."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62)


def made_at(value: uuid.UUID) -> datetime:
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)
