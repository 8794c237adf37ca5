"""Which trace a job is in, and which span each of its runs is. Both follow from its row, so nothing else is stored.

A job without a stored `traceparent` is a trace of its own, and its id is the trace's. The span of a run is a hash of
job and lease token: whoever runs the job next knows the span of the run before, even if that worker was killed.
"""

from __future__ import annotations

import re
import uuid
from hashlib import blake2b
from typing import NamedTuple

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)

SAMPLED = 0x01
RANDOM = 0x02
"""The low 56 bits of the trace's id are random. They are in a UUIDv7."""


class SpanName(NamedTuple):
    """Where a span is: its trace, its id in it, and whether the trace is recorded."""

    trace_id: int
    span_id: int
    sampled: bool

    @property
    def traceparent(self) -> str:
        return traceparent(self.trace_id, self.span_id, sampled=self.sampled)


def parse(text: str | None) -> SpanName | None:
    """Read a `traceparent` (W3C Trace Context). None if it is not one: callers may store what they like."""
    match = _TRACEPARENT.match(text) if text else None
    if match is None:
        return None
    trace_id, span_id = int(match[1], 16), int(match[2], 16)
    if not trace_id or not span_id or text is None or text.startswith("ff"):
        return None
    return SpanName(trace_id, span_id, bool(int(match[3], 16) & SAMPLED))


def traceparent(trace_id: int, span_id: int, *, sampled: bool) -> str:
    return f"00-{trace_id:032x}-{span_id:016x}-{SAMPLED if sampled else 0:02x}"


def trace_id_of(job_id: uuid.UUID, traceparent: str | None) -> str:
    """The trace that tells of a job, as it is shown: 32 hexadecimal digits."""
    stored = parse(traceparent)
    return f"{stored.trace_id if stored else job_id.int:032x}"


def run_span_id(job_id: uuid.UUID, lease_token: int) -> int:
    """The span of one run of a job."""
    found = blake2b(job_id.bytes + lease_token.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(found, "big") or 1


def run_trace_id(job_id: uuid.UUID, lease_token: int) -> int:
    """The trace of one run, where each run is a trace of its own (`WAYBILL_TRACE_JOBS=link`)."""
    found = blake2b(job_id.bytes + lease_token.to_bytes(8, "big"), digest_size=16, person=b"run").digest()
    return int.from_bytes(found, "big") or 1
