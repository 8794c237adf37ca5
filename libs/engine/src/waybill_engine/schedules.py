"""Schedules of periodic jobs: what a schedule is, and what a service or a person may do to it.

A service declares its schedules whenever it starts; declaring the same again changes nothing. The row has everything
that its jobs need, so any worker can fire it, even one that does not know the kind. `ticks` fires schedules.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from waybill import audit
from waybill.errors import NotFound, Refused
from waybill_engine.cron import Cron
from waybill_engine.enqueue import enqueue
from waybill_engine.kinds import JobKind, is_name
from waybill_engine.new_job import NewJob, payload_json
from waybill_engine.registry import known_kinds
from waybill_engine.retry import RetryPolicy
from waybill_engine.unique_keys import Unique, UniqueScope

if TYPE_CHECKING:
    import asyncpg

    from waybill.db.database import Connection

TICK = "schedule"
"""The key in a job's payload that says which tick it is for."""

# When several workers that start at once declare the same, the first inserts and the others find nothing to change. An
# operator's pause stays. The next tick stays unless the cron expression or the zone changed: it may be owed already.
_DECLARE = """
WITH declared AS (
    INSERT INTO schedules (
        name, cron, timezone, missed, grace, kind, queue, tenant, payload, priority, cost,
        max_attempts, max_crashes, time_limit, next_at, created_at, updated_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11, $12, $13, $14, $15, now(), now())
        ON CONFLICT (name) DO UPDATE
       SET cron = excluded.cron, timezone = excluded.timezone, missed = excluded.missed, grace = excluded.grace,
           kind = excluded.kind, queue = excluded.queue, tenant = excluded.tenant, payload = excluded.payload,
           priority = excluded.priority, cost = excluded.cost, max_attempts = excluded.max_attempts,
           max_crashes = excluded.max_crashes, time_limit = excluded.time_limit, updated_at = now(),
           next_at = CASE WHEN (schedules.cron, schedules.timezone) IS DISTINCT FROM (excluded.cron, excluded.timezone)
                          THEN excluded.next_at ELSE schedules.next_at END
     WHERE (schedules.cron, schedules.timezone, schedules.missed, schedules.grace, schedules.kind, schedules.queue,
            schedules.tenant, schedules.payload, schedules.priority, schedules.cost, schedules.max_attempts,
            schedules.max_crashes, schedules.time_limit)
           IS DISTINCT FROM
           (excluded.cron, excluded.timezone, excluded.missed, excluded.grace, excluded.kind, excluded.queue,
            excluded.tenant, excluded.payload, excluded.priority, excluded.cost, excluded.max_attempts,
            excluded.max_crashes, excluded.time_limit)
    RETURNING created_at = updated_at AS created, next_at
)
SELECT created, pg_notify('waybill_schedules', extract(epoch FROM next_at - now())::text) FROM declared
"""

_REMOVE = "DELETE FROM schedules WHERE name = $1 RETURNING name"

_PAUSE = """
UPDATE schedules SET paused_at = COALESCE(paused_at, now()), paused_reason = $2 WHERE name = $1 RETURNING name
"""

COLUMNS = """
now() AS now, name, cron, timezone, missed, grace, kind, queue, tenant, payload, priority, cost, max_attempts,
max_crashes, time_limit, paused_at, next_at
"""
"""What `stored` and its callers read of a schedule. With a `*`, a column that a newer release adds would change the
result, and Postgres refuses prepared statements whose result has changed."""

_LOCK = f"SELECT {COLUMNS} FROM schedules WHERE name = $1 FOR UPDATE"  # noqa: S608 - made of constants

_RESUME = """
WITH resumed AS (
    UPDATE schedules SET paused_at = NULL, paused_reason = NULL, next_at = $2 WHERE name = $1 RETURNING next_at
)
SELECT pg_notify('waybill_schedules', extract(epoch FROM next_at - now())::text) FROM resumed WHERE next_at IS NOT NULL
"""


class Missed(StrEnum):
    """What happens to ticks that nobody could fire, because there was no worker or no database."""

    SKIP = "skip"
    """They are dropped. A tick that is late by less than the schedule's grace still fires."""
    ONCE = "once"
    """One job makes up for all of them, for the latest tick."""
    ALL = "all"
    """Each of them gets its job, oldest first."""


@dataclass(frozen=True, slots=True)
class Schedule:
    name: str
    kind: JobKind
    cron: str
    """Five fields: minute, hour, day of month, month, day of week."""
    tenant: str
    timezone: str = "UTC"
    """The time zone that `cron` is in, such as `Europe/Berlin`."""
    payload: Mapping[str, Any] = field(default_factory=dict)
    """Every job gets it, with a key `schedule` added that has the schedule's name and the tick."""
    missed: Missed = Missed.ONCE
    grace: float = 60.0
    """Seconds a tick may be late and still fire, for `Missed.SKIP`."""
    queue: str | None = None
    priority: int = 0
    cost: int = 1

    def __post_init__(self) -> None:
        # Checked where it is written, not at night when it is due.
        if not is_name(self.name):
            raise Refused(
                f"{self.name[:80]!r} cannot be a schedule: a name is lower case letters, digits and _, at most 63."
            )
        if TICK in self.payload:
            raise Refused(f"A schedule's payload cannot have the key {TICK!r}: the tick goes there.")
        if not 1 <= self.grace <= 31 * 86400:
            raise Refused("A schedule's grace must be between 1 second and 31 days.")
        Cron(self.cron, self.timezone)
        payload_json(self.job(datetime(2000, 1, 1, microsecond=1, tzinfo=UTC), extra=True))

    def job(self, tick: datetime, *, extra: bool = False) -> NewJob:
        """The job of a tick, or an extra one. A tick never has two jobs: its key is unique for ever."""
        told = {"name": self.name, "tick": _text(tick), "local": _text(tick.astimezone(ZoneInfo(self.timezone)))}
        return NewJob(
            self.kind,
            self.tenant,
            {**self.payload, TICK: told | ({"extra": True} if extra else {})},
            queue=self.queue,
            priority=self.priority,
            cost=self.cost,
            unique=None if extra else Unique(f"schedule:{self.name}:{_text(tick)}", UniqueScope.FOREVER),
        )


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def tick_of(payload: Mapping[str, Any]) -> datetime | None:
    """For handlers: the tick that this job is for, in its schedule's time zone. None if no schedule made the job."""
    told = payload.get(TICK)
    return datetime.fromisoformat(told["local"]) if isinstance(told, dict) else None


class Declared(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


async def declare(connection: Connection, schedule: Schedule) -> Declared:
    """Create the schedule, or change it to what is declared. A paused schedule stays paused."""
    cron = Cron(schedule.cron, schedule.timezone)
    kind = schedule.kind
    async with connection.transaction():
        next_at = next(cron.after(await connection.fetchval("SELECT now()")), None)
        if next_at is None:
            raise Refused(f"{schedule.cron!r} has no more ticks.")
        row = await connection.fetchrow(
            _DECLARE,
            schedule.name,
            cron.expression,
            cron.timezone,
            schedule.missed.value,
            schedule.grace,
            kind.name,
            schedule.queue or kind.queue,
            schedule.tenant,
            json.dumps(schedule.payload),
            schedule.priority,
            schedule.cost,
            kind.retry.max_attempts,
            kind.max_crashes,
            kind.time_limit,
            next_at,
        )
        if row is None:
            return Declared.UNCHANGED
        outcome = Declared.CREATED if row["created"] else Declared.CHANGED
        detail = {"cron": cron.expression, "timezone": cron.timezone, "kind": kind.name}
        await _note(connection, outcome.value, schedule.name, schedule.tenant, **detail)
    return outcome


async def remove(connection: Connection, name: str) -> None:
    """Remove a schedule. Its jobs stay."""
    async with connection.transaction():
        if await connection.fetchval(_REMOVE, name) is None:
            raise _not_found(name)
        await _note(connection, "removed", name)


async def pause(connection: Connection, name: str, reason: str | None = None) -> None:
    """Pause a schedule. Ticks that come while it is paused do not count as missed: nobody wanted them."""
    async with connection.transaction():
        if await connection.fetchval(_PAUSE, name, reason) is None:
            raise _not_found(name)
        await _note(connection, "paused", name, reason=reason)


async def resume(connection: Connection, name: str) -> bool:
    """Resume a schedule with its next tick from now. False if it was not paused."""
    async with connection.transaction():
        row = await _lock(connection, name)
        if row["paused_at"] is None:
            return False
        await connection.execute(_RESUME, name, next(Cron(row["cron"], row["timezone"]).after(row["now"]), None))
        await _note(connection, "resumed", name, row["tenant"])
        return True


async def run_now(connection: Connection, name: str) -> uuid.UUID:
    """Enqueue one extra job now, even if the schedule is paused, and return its id."""
    async with connection.transaction():
        row = await _lock(connection, name)
        job_id = (await enqueue(connection, stored(row).job(row["now"], extra=True), as_operator=True)).id
        await _note(connection, "run", name, row["tenant"], job=job_id)
        return job_id


async def _note(connection: Connection, what: str, name: str, tenant: str | None = None, **detail: Any) -> None:
    await audit.record(connection, f"schedule.{what}", f"schedule:{name}", tenant=tenant, detail=detail)


def stored(row: asyncpg.Record) -> Schedule:
    """A schedule from its row. The row has what its jobs need to know about their kind."""
    known = known_kinds().get(row["kind"])
    return Schedule(
        name=row["name"],
        kind=JobKind(
            row["kind"],
            queue=row["queue"],
            time_limit=row["time_limit"],
            retry=RetryPolicy(retries=row["max_attempts"] - 1),
            max_crashes=row["max_crashes"],
            tells_end=known is not None and known.tells_end,
        ),
        cron=row["cron"],
        tenant=row["tenant"],
        timezone=row["timezone"],
        payload=json.loads(row["payload"]),
        missed=Missed(row["missed"]),
        grace=row["grace"],
        priority=row["priority"],
        cost=row["cost"],
    )


async def _lock(connection: Connection, name: str) -> asyncpg.Record:
    row = await connection.fetchrow(_LOCK, name)
    if row is None:
        raise _not_found(name)
    return row


def _not_found(name: str) -> NotFound:
    return NotFound(f"There is no schedule {name}. See: waybill schedules ls")
