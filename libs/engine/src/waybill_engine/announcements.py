"""Announcements: how workers hear that there is something to do, sent when the transaction commits.

Seven channels. `waybill_lanes` names a lane that has new jobs, since when, and how many. `waybill_jobs` names only a
queue, and workers look for themselves; release 0.1.0 names lanes there, too. `waybill_scheduled` and
`waybill_schedules` say in how many seconds a job or a schedule is due; `waybill_promoted` says that jobs which were due
are claimable now, and when the next is due. `waybill_control` has a worker's id (look at
your jobs) or `look` (the rules have changed). `waybill_relay` asks for a relay. Nothing depends on any of them: without
announcements, polling finds everything a little later.

Those about jobs are sent by the function `waybill_announce`, which hands them to a relay while many are sent at once;
see `relay`.

The SQL here is a statement's last common table expressions. The statement provides what they read, and its final
SELECT must read from them, or Postgres would leave them out.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.lanes import Lane, Position

if TYPE_CHECKING:
    from waybill.db.database import Connection

JOBS = "waybill_jobs"
LANES = "waybill_lanes"
SCHEDULED = "waybill_scheduled"
SCHEDULES = "waybill_schedules"
CONTROL = "waybill_control"
PROMOTED = "waybill_promoted"
RELAY = "waybill_relay"
CHANNELS = (JOBS, LANES, SCHEDULED, SCHEDULES, PROMOTED, CONTROL, RELAY)

ANNOUNCE_LANES = """lanes AS (
    SELECT queue, kind, priority, tenant, owner, min(created_at) AS since, sum(jobs)::bigint AS jobs,
           count(*) OVER () > 16 AS many
      FROM ready GROUP BY queue, kind, priority, tenant, owner
), announced AS (
    SELECT count(CASE WHEN many THEN waybill_announce('waybill_jobs', queue)
                      ELSE waybill_announce('waybill_lanes',
                                            json_build_array(queue, kind, priority, tenant, owner)::text,
                                            (extract(epoch FROM since) * 1000000)::bigint, jobs) END) AS lanes
      FROM lanes
)"""
"""Announces lanes of `ready` (queue, kind, priority, tenant, owner, created_at, jobs); beyond 16, only their queues."""

ANNOUNCE_QUEUES = """announced AS (
    SELECT count(waybill_announce('waybill_jobs', queue)) AS queues
      FROM (SELECT DISTINCT queue FROM ready) AS ready_queues
)"""
"""Announces the queues of the jobs in `ready` (queue), for jobs that come back into the middle of a lane."""

ANNOUNCE_DUE = """announced_due AS (
    SELECT count(waybill_announce('waybill_scheduled', next_in::text)) AS jobs
      FROM (SELECT extract(epoch FROM min(run_at) - now()) AS next_in FROM later) AS due
     WHERE next_in IS NOT NULL
)"""
"""Announces when the first of the jobs in `later` (run_at) is due."""

_ANNOUNCE = f"""
WITH ready AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::timestamptz[],
                         $7::bigint[]) AS lane (queue, kind, priority, tenant, owner, created_at, jobs)
), {ANNOUNCE_LANES}
SELECT lanes FROM announced
"""  # noqa: S608 - made of constants

EVERYBODY = 2**31
"""A number of jobs at which every worker reacts to an announcement."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Announced(NamedTuple):
    """What an announcement says: this lane has so many new jobs, none of them before this position."""

    lane: Lane
    first: Position
    jobs: int


def parse_lane(payload: str) -> Announced:
    """What a `waybill_lanes` announcement says. Anybody who may connect may notify, so what does not fit is refused."""
    lane, since, jobs = _fields(payload, 3)
    if not isinstance(lane, list) or type(since) is not int or type(jobs) is not int or jobs < 1:
        raise ValueError(payload)
    try:
        moment = _EPOCH + timedelta(microseconds=since)
    except OverflowError as error:
        raise ValueError(payload) from error
    return Announced(_lane(lane, payload), Position(moment), jobs)


def parse_jobs(payload: str) -> str:
    """The queue that a `waybill_jobs` announcement names.

    Release 0.1.0 names a lane and its first job there. That does not say whose job it is, so it is no lane of ours.
    """
    if not payload.startswith("["):
        return payload
    queue, _kind, _priority, _tenant, first = _fields(payload, 5)
    if not isinstance(queue, str) or not isinstance(first, str):
        raise ValueError(payload)
    uuid.UUID(first)
    return queue


def _fields(payload: str, count: int) -> list[object]:
    fields = json.loads(payload)
    if not isinstance(fields, list) or len(fields) != count:
        raise ValueError(payload)
    return fields


def _lane(fields: list[object], payload: str) -> Lane:
    if len(fields) != 5:
        raise ValueError(payload)
    queue, kind, priority, tenant, owner = fields
    if not (isinstance(queue, str) and isinstance(kind, str) and isinstance(tenant, str) and isinstance(owner, str)):
        raise ValueError(payload)
    if not isinstance(priority, int) or isinstance(priority, bool) or not -32768 <= priority <= 32767:
        raise ValueError(payload)
    return Lane(queue, kind, priority, tenant, owner)


async def announce(connection: Connection, lanes: Sequence[Announced]) -> None:
    """Announce lanes, in a transaction that need not have written anything."""
    await connection.execute(
        _ANNOUNCE,
        [one.lane.queue for one in lanes],
        [one.lane.kind for one in lanes],
        [one.lane.priority for one in lanes],
        [one.lane.tenant for one in lanes],
        [one.lane.owner for one in lanes],
        [one.first.created_at for one in lanes],
        [one.jobs for one in lanes],
    )
