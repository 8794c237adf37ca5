"""The backlog: what waits and runs, and how many workers it calls for.

Workers scale by the time in which what waits should be gone, the drain target. A kind whose jobs take `seconds` each
asks for a slot for every job that runs, and for `queued * seconds / drain target` more. How long a job takes is what
those took that ended in the last quarter of an hour; where these are few, in the last day; where there are none, a
default.

More workers do not help a job that is scheduled, that waits for its turn in a sequence or for its children, whose queue
is paused, or whose dependency is down (while a breaker is half open, its probes count). A cap on a kind, a tenant or
both limits the slots that its jobs ask for, and so does a rate: of jobs that take a minute each, one start a second
keeps no more than 60 slots busy. Where several limits meet, each group of jobs shrinks to its own limits first, then
the groups of a tenant together to the tenant's, then those of a kind to the kind's.

All of it is decided by one function in the database (`engine_0019`), so that whoever scales workers gets the same
number: the operator, KEDA, a person. It counts 10,000 waiting jobs at most. Beyond that it goes by the newest sample
(`samples`), which is at most a minute old, and takes what it did not count to look like what it did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from waybill.errors import Refused

if TYPE_CHECKING:
    from waybill.db.database import Connection

DRAIN_TARGET = 60.0
"""Seconds in which what waits should be gone, unless somebody asks for another time."""

_READ = """
SELECT wanted, queued, running, waiting, oldest, seconds_to_drain, held, estimated
  FROM waybill_backlog($1::text[], $2::text[], $3::integer, $4::float8, $5::float8, $6::integer)
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    wanted: int
    """How many workers are wanted. At least one while a job runs or could, or while something else needs a worker: a
    schedule is due, or a job of a sequence has to be let in."""
    queued: int
    """How many jobs wait for nothing but a free slot."""
    running: int
    waiting: int
    """How many jobs are queued or due, those that are held included."""
    oldest: datetime | None
    """Since when the job has been runnable that has waited longest, of those that were counted and are not held."""
    seconds_to_drain: float | None
    """How long the present workers need for what waits, as far as caps and rates let them. None if there are no workers
    for it."""
    held: Mapping[str, int]
    """How many jobs more workers would not help, by the reason that `explain` gives for each of them. Of those that are
    scheduled or wait for others, at least so many."""
    estimated: bool
    """There were more jobs than were counted."""


async def read_backlog(
    connection: Connection,
    queues: Sequence[str] = (),
    kinds: Sequence[str] = (),
    *,
    slots: int,
    drain_target: float = DRAIN_TARGET,
    default_seconds: float = 1.0,
    probes: int = 2,
) -> Backlog:
    """The backlog of workers that serve these queues and kinds. An empty sequence stands for all there are.

    `slots` is how many jobs one worker runs at once, `default_seconds` how long a job takes whose kind has not been
    seen for a day, and `probes` how many jobs a half-open breaker lets through (`WAYBILL_BREAKER_PROBES`).
    """
    try:
        row = await connection.fetchrow(_READ, list(queues), list(kinds), slots, drain_target, default_seconds, probes)
    except (asyncpg.InvalidParameterValueError, asyncpg.DataError) as error:
        raise Refused(str(error)) from None
    assert row is not None, "a function with OUT parameters always answers"  # noqa: S101
    return Backlog(
        wanted=row["wanted"],
        queued=row["queued"],
        running=row["running"],
        waiting=row["waiting"],
        oldest=row["oldest"],
        seconds_to_drain=row["seconds_to_drain"],
        held=json.loads(row["held"]) if isinstance(row["held"], str) else row["held"],
        estimated=row["estimated"],
    )
