"""Deaths: workers whose pod the cluster says is dead give their jobs back before their leases end.

The rules are those of `rescue`. A pod that the cluster took away (gone, evicted, preempted, its node lost) releases its
jobs, and none is charged. A container that crashed or was killed for its memory is a crash like any other: the job is
charged that ran alone in it; if there were several, in whatever process, all are suspects. The process for suspects
shares its container with others, but its job has been suspected before, so that one is charged.

Three guards keep a wrong verdict from doing harm. Every write of a worker is fenced, so one that lives on changes
nothing. Its row is locked and looked at again. And a pod that the server has never shown us counts as gone only when
its worker has missed a renewal of its lease: with two clusters on one database, it may be in the other one.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from waybill_engine.pods.verdicts import Fate, PodVerdict, PodWorker
from waybill_engine.rescue import DO_NOT_WAIT, Death, Rescued, return_jobs

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LIST = """
SELECT id, name, pod_namespace, pod_name, pod_uid, node_started_at
  FROM workers
 WHERE state IN ('active', 'draining')
   AND pod_namespace IS NOT NULL AND pod_name IS NOT NULL AND pod_uid IS NOT NULL
 ORDER BY id
"""

# A heartbeat comes at least every third of the lease's time.
_LOCK = """
SELECT id, name, state, isolating, false AS in_outage
  FROM workers
 WHERE id = ANY ($1::uuid[]) AND state IN ('active', 'draining')
   AND (id <> ALL ($2::uuid[]) OR last_seen_at < now() - 0.4 * (lease_expires_at - last_seen_at))
 ORDER BY id
   FOR UPDATE
"""

_RUNNING = "SELECT count(*) FROM jobs WHERE lease_owner = ANY ($1::uuid[])"


@dataclass(frozen=True, slots=True)
class Settled:
    worker: PodWorker
    verdict: PodVerdict
    jobs: tuple[Rescued, ...]


async def workers_in_pods(connection: Connection) -> list[PodWorker]:
    """Every worker that may run jobs and said which pod it is in. Read this before the pods."""
    return [PodWorker(*row) for row in await connection.fetch(_LIST)]


async def settle_dead(connection: Connection, verdicts: Iterable[tuple[PodWorker, PodVerdict]]) -> list[Settled]:
    """Take the jobs back from those of these workers that are dead. The others may be among them.

    A worker whose jobs somebody has locked is left to the next look, or to the end of its lease.
    """
    pods: dict[tuple[str, str], list[tuple[PodWorker, PodVerdict]]] = defaultdict(list)
    for worker, verdict in verdicts:
        if verdict.dead:
            pods[worker.namespace, worker.uid].append((worker, verdict))
    settled: list[Settled] = []
    for dead in pods.values():
        try:
            async with connection.transaction():
                await connection.execute(DO_NOT_WAIT)
                found = await _settle_pod(connection, {worker.id: (worker, verdict) for worker, verdict in dead})
        except asyncpg.LockNotAvailableError:
            continue
        settled += found
    return settled


async def _settle_pod(connection: Connection, dead: dict[uuid.UUID, tuple[PodWorker, PodVerdict]]) -> list[Settled]:
    unseen = [worker.id for worker, verdict in dead.values() if not verdict.seen]
    rows = await connection.fetch(_LOCK, list(dead), unseen)
    jobs = await connection.fetchval(_RUNNING, [row["id"] for row in rows])
    settled = []
    for row in rows:
        worker, verdict = dead[row["id"]]
        death = Death(
            cause=verdict.fate.value,
            says=verdict.says,
            charged=verdict.charged,
            in_spite_of_drain=verdict.fate is Fate.OOM_KILLED,
            together=jobs > 1 and not row["isolating"],
        )
        settled.append(Settled(worker, verdict, tuple(await return_jobs(connection, row, death))))
    return settled
