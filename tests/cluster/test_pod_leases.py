"""Jobs of pods that are gone come back at once, by the operator's eye on pods; who is charged depends on what happened.

Leases last ten minutes here, so nothing comes back because a lease has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from support.cluster import Object
from support.patience import wait_until
from support.process_node import PodRun
from support.tried_release import PROCESS, TriedRelease

VALUES: Object = {
    "worker": {**PROCESS, "concurrency": 1, "autoscaling": {"minReplicas": 1}},
    "autoscaling": {"metricsSource": "none"},
    "settings": {"WAYBILL_LEASE_TTL": "600", "WAYBILL_HEARTBEAT_INTERVAL": "100"},
}


def force_deleted(tried: TriedRelease, pod: PodRun) -> None:
    now = ["--grace-period=0", "--force", f"--namespace={tried.namespace}"]
    tried.cluster.kubectl("delete", "pod", pod.name, *now)


def evicted(tried: TriedRelease, pod: PodRun) -> None:
    pod.fail("Evicted", "The node was low on resource: memory.")


def out_of_memory(tried: TriedRelease, pod: PodRun) -> None:
    pod.container("worker").kill("OOMKilled")


def crashed(tried: TriedRelease, pod: PodRun) -> None:
    pod.container("worker").kill()


@pytest.mark.parametrize(
    ("end", "crashes", "said"),
    [
        (force_deleted, 0, ""),
        (evicted, 0, ""),
        (out_of_memory, 1, "memory"),
        (crashed, 1, "137"),
    ],
)
def test_a_job_comes_back_as_soon_as_its_pod_is_known_to_be_gone(
    tried: TriedRelease, end: Callable[[TriedRelease, PodRun], None], crashes: int, said: str
) -> None:
    tried.sql(lambda connection: connection.execute("DELETE FROM jobs"))
    tried.until_pool("default", "Ready")
    tried.enqueue(1, steps=900)
    before = _until_running(tried, token=0)
    pod = tried.node.pod(tried.namespace, before["pod_name"])
    _until_the_next_second()
    end(tried, pod)
    after = _until_running(tried, token=before["lease_token"])
    assert (after["crashes"], after["attempts"] - before["attempts"]) == (crashes, crashes)
    assert said in (after["error_message"] or "")
    tried.sql(lambda connection: connection.execute("DELETE FROM jobs"))
    force_deleted(tried, tried.node.pod(tried.namespace, after["pod_name"]))


def _until_the_next_second() -> None:
    """Nodes stamp whole seconds: a container that starts in the second in which the one before registered its worker is
    not told from it, and the lease decides."""
    now = int(time.time())
    wait_until(lambda: int(time.time()) > now, "the next second has begun", within=10)


def _until_running(tried: TriedRelease, *, token: int) -> dict[str, Any]:
    """The job, once it runs under a later lease."""
    found: list[dict[str, Any]] = []

    async def look(connection: Any) -> None:
        rows = await connection.fetch(
            """
            SELECT j.lease_token, j.crashes, j.attempts, j.error_message, w.pod_name
              FROM jobs j JOIN workers w ON w.id = j.lease_owner
             WHERE j.state = 'running' AND j.lease_token > $1
            """,
            token,
        )
        found[:] = [dict(row) for row in rows]

    def running() -> bool:
        tried.sql(look)
        return bool(found)

    wait_until(running, f"the job runs under a later lease than {token}", within=90, every=0.3)
    return found[0]
