"""Ids are UUIDv7 (RFC 9562): they sort by the time they were made, so new rows land at the end of every index."""

from __future__ import annotations

import secrets
import threading
import time
import uuid
from datetime import UTC, datetime

_lock = threading.Lock()
_last = 0


def new_id() -> uuid.UUID:
    """A new UUIDv7. Ids of one process grow strictly, also within a millisecond and when the clock steps back."""
    global _last
    # 48 bits of milliseconds, then 12 bits that count on within one: sub-millisecond time, as RFC 9562 method 3.
    ns = time.time_ns()
    stamp = (ns // 1_000_000) << 12 | (ns % 1_000_000) * 4096 // 1_000_000
    with _lock:
        _last = stamp = max(stamp, _last + 1)
    return uuid.UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62))


def first_id_at(moment: datetime) -> uuid.UUID:
    """The smallest id made at `moment`: everything older sorts before it."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62)


def made_at(value: uuid.UUID) -> datetime:
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)
