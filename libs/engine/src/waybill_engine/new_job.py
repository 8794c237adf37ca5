"""A job as its enqueuer describes it, checked before the database sees it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from waybill.errors import Refused
from waybill.ids import new_id
from waybill.pg_text import is_storable
from waybill_engine.kinds import JobKind, is_name
from waybill_engine.sequences import SequenceKey
from waybill_engine.unique_keys import Unique

_LONGEST = 10 * 366 * 86400.0
"""Ten years, in seconds: nobody plans further ahead."""

_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

MAX_PAYLOAD = 64 * 1024
"""Bytes of JSON. Rows stay narrow: put bigger things into storage, and their key into the payload."""


@dataclass(frozen=True, slots=True)
class NewJob:
    kind: JobKind
    tenant: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    owner: str | None = None
    """Who may see it. The tenant, unless given."""
    queue: str | None = None
    """Where it waits. The kind's queue, unless given."""
    priority: int = 0
    """Higher runs first. A priority above 0 needs an operator's grant to the tenant."""
    cost: int = 1
    """How much work it is: bytes, pages or another unit. Tenants share by it, so use one unit for all kinds."""
    delay: float = 0.0
    """Seconds from now until it may start, by the database's clock."""
    run_at: datetime | None = None
    """An absolute time instead of a delay."""
    unique: Unique | None = None
    sequence: SequenceKey | None = None
    """It runs after earlier jobs of its tenant and kind with the same key, one at a time or a few at once."""
    traceparent: str | None = None
    """The span that the job comes from (W3C Trace Context). The current one, unless given."""
    tracestate: str | None = None
    id: uuid.UUID = field(default_factory=new_id)

    def __post_init__(self) -> None:
        # Checked here, because an error in the database would end the caller's transaction.
        if not (1 <= len(self.tenant) <= 200 and is_storable(self.tenant)):
            raise Refused("A job's tenant must have 1 to 200 characters, none of them NUL.")
        if self.owner is not None and not (1 <= len(self.owner) <= 200 and is_storable(self.owner)):
            raise Refused("A job's owner must have 1 to 200 characters, none of them NUL.")
        if self.queue is not None and not is_name(self.queue):
            raise Refused(
                f"{self.queue[:80]!r} cannot be a queue: a name is lower case letters, digits and _, at most 63."
            )
        if not -32768 <= self.priority <= 32767:
            raise Refused("A job's priority must be between -32768 and 32767.")
        if not 1 <= self.cost < 2**63:
            raise Refused("A job's cost must be a whole number, at least 1.")
        if not 0 <= self.delay <= _LONGEST:
            raise Refused("A job's delay must be between 0 seconds and ten years.")
        if self.run_at is not None:
            if self.run_at.tzinfo is None:
                raise Refused("A job's run_at needs a time zone.")
            if not _EARLIEST < self.run_at < _LATEST:
                raise Refused("A job's run_at must be between the years 1970 and 3000.")
        if self.traceparent is not None and not (len(self.traceparent) <= 200 and is_storable(self.traceparent)):
            raise Refused("A job's traceparent must have at most 200 characters, none of them NUL.")
        if self.tracestate is not None and not (len(self.tracestate) <= 512 and is_storable(self.tracestate)):
            raise Refused("A job's tracestate must have at most 512 characters, none of them NUL.")


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def payload_json(job: NewJob) -> str:
    """A job's payload as it is stored. Raises Refused if it cannot be stored."""
    return compact_json(job.payload, "payload", MAX_PAYLOAD) if job.payload else "{}"


def compact_json(value: Mapping[str, Any], what: str, most: int) -> str:
    """A JSON object as it is stored with a job. Raises Refused if it cannot be, or has more than `most` bytes."""
    try:
        text = _encode(value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"A job's {what} must be JSON: {error}") from error
    if size > most:
        raise Refused(f"A job's {what} must be at most {most} bytes of JSON. Keep bigger things in storage.")
    if "u0000" in text and _NUL_IN_JSON.search(text):
        raise Refused(f"A job's {what} must not have NUL characters.")
    return text
