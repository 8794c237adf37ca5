"""How many jobs run in each pod, so that an operator can tell busy pods from idle ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Few workers, and for each the index that has only running jobs.
_JOBS = """
SELECT pod_uid, sum(running)::int AS running
  FROM (SELECT pod_uid, (SELECT count(*) FROM jobs WHERE lease_owner = workers.id) AS running
          FROM workers
         WHERE state IN ('active', 'draining') AND pod_namespace = $1 AND pod_uid IS NOT NULL) AS held
 GROUP BY pod_uid
"""


async def running_by_pod(connection: Connection, namespace: str) -> dict[str, int]:
    """By the uid of each pod in the namespace that has a worker."""
    return {row["pod_uid"]: row["running"] for row in await connection.fetch(_JOBS, namespace)}
