"""Ids are UUIDv7 (RFC 9562): they sort by the time they were made, so new rows land at the end of every index."""

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


# A child process must not go through the same bytes as its parent.
os.register_at_fork(after_in_child=_forget_random)


def new_id() -> uuid.UUID:
    """A new UUIDv7. Ids of one process grow strictly, also within a millisecond and when the clock steps back."""
    global _last, _random, _used
    # 48 bits of milliseconds, then 12 bits that count on within one: sub-millisecond time, as RFC 9562 method 3.
    ns = time.time_ns()
    stamp = (ns // 1_000_000) << 12 | (ns % 1_000_000) * 4096 // 1_000_000
    with _lock:
        _last = stamp = max(stamp, _last + 1)
        if _used >= len(_random):
            # By the hundred: asking the system for each id would take longer than all the rest.
            _random, _used = os.urandom(8 * 256), 0
        chance = int.from_bytes(_random[_used : _used + 8], "big") >> 2
        _used += 8
    return uuid.UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | chance)


def first_id_at(moment: datetime) -> uuid.UUID:
    """The smallest id made at `moment`: everything older sorts before it."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62)


def made_at(value: uuid.UUID) -> datetime:
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)
