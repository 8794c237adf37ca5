"""What a pool's status says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from support.pool_objects import pool
from waybill.cluster import Object
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.pool import WorkerPool
from waybill_operator.pools.status import PoolTrouble, status

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIGURES = PoolFigures(
    wanted=4, queued=30, running=10, oldest=NOW - timedelta(minutes=2), seconds_to_drain=41.6, breakers="closed", at=NOW
)


def deployment(replicas: int = 3, ready: int = 3, updated: int = 3, have: int = 3, **more: Any) -> Object:
    return {
        "metadata": {"generation": 2},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 2,
            "replicas": have,
            "readyReplicas": ready,
            "updatedReplicas": updated,
            **more,
        },
    }


def written(
    made: Object | None = None,
    *,
    of: WorkerPool | None = None,
    trouble: PoolTrouble | None = None,
    figures: PoolFigures | None = FIGURES,
    figures_trouble: str | None = None,
    now: datetime = NOW,
) -> Object:
    return status(
        of or pool(),
        selector="a=b",
        deployment=made,
        trouble=trouble,
        figures=figures,
        figures_trouble=figures_trouble,
        now=now,
    )


def conditions(said: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in said["conditions"]}


def test_a_pool_whose_workers_are_ready_is_ready() -> None:
    said = written(deployment())
    assert conditions(said) == {
        "Ready": ("True", "WorkersReady"),
        "Progressing": ("False", "Stable"),
        "Degraded": ("False", "AsExpected"),
        "Measured": ("True", "Counted"),
    }
    assert (said["replicas"], said["readyReplicas"], said["selector"]) == (3, 3, "a=b")
    assert said["observedGeneration"] == 3


def test_figures_are_as_people_read_them() -> None:
    said = written(deployment())
    assert (said["wanted"], said["queued"], said["running"], said["breakers"]) == (4, 30, 10, "closed")
    assert said["oldest"] == "2026-03-01T11:58:00Z"
    assert said["timeToDrainSeconds"] == 42


def test_progress_says_what_is_waited_for() -> None:
    assert conditions(written(None))["Progressing"] == ("True", "Creating")
    assert conditions(written(deployment(updated=1)))["Progressing"] == ("True", "RollingOut")
    assert conditions(written(deployment(ready=2)))["Progressing"] == ("True", "Starting")
    assert conditions(written(deployment(have=5)))["Progressing"] == ("True", "ScalingDown")
    stale = deployment()
    stale["metadata"]["generation"] = 3
    assert conditions(written(stale))["Progressing"] == ("True", "RollingOut")


def test_no_worker_is_ready_or_none_is_wanted() -> None:
    assert conditions(written(deployment(ready=0)))["Ready"] == ("False", "NoWorkers")
    assert conditions(written(deployment(0, 0, 0, 0)))["Ready"] == ("True", "ScaledToZero")


def test_what_is_wrong_is_said_where_people_look() -> None:
    trouble = PoolTrouble("InvalidSpec", "spec.concurrency: must be more", final=True)
    said = written(None, trouble=trouble)
    assert conditions(said)["Degraded"] == ("True", "InvalidSpec")
    assert conditions(said)["Progressing"] == ("False", "Stopped")
    [degraded] = [one for one in said["conditions"] if one["type"] == "Degraded"]
    assert degraded["message"] == "spec.concurrency: must be more"


def test_a_deployment_that_is_stuck_degrades_the_pool() -> None:
    quota = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}
    assert conditions(written(deployment(conditions=[quota])))["Degraded"] == ("True", "FailedCreate")
    assert conditions(written(deployment(conditions=[stuck])))["Degraded"] == ("True", "ProgressDeadlineExceeded")


def test_while_the_database_is_away_the_last_figures_stay_and_are_called_old() -> None:
    before = pool()
    before.body["status"] = written(deployment())
    said = written(deployment(), of=before, figures=None, figures_trouble="Postgres does not answer.")
    assert (said["queued"], said["wanted"]) == (30, 4)
    assert conditions(said)["Measured"] == ("False", "NotCounted")


def test_the_time_of_a_transition_stays_until_the_next_one() -> None:
    before = pool()
    before.body["status"] = written(deployment(ready=0))
    later = NOW + timedelta(hours=1)
    still = written(deployment(ready=0), of=before, now=later)
    then = written(deployment(), of=before, now=later)

    def since(said: Object) -> str:
        return str(next(one for one in said["conditions"] if one["type"] == "Ready")["lastTransitionTime"])

    assert since(still) == "2026-03-01T12:00:00Z"
    assert since(then) == "2026-03-01T13:00:00Z"


def test_a_pool_that_is_deleted_says_how_many_workers_are_still_there() -> None:
    leaving = pool(deletionTimestamp="2026-03-01T11:59:00Z")
    said = written(deployment(0, 1, 1, 2), of=leaving)
    assert conditions(said)["Ready"] == ("False", "Draining")
    assert conditions(said)["Progressing"] == ("True", "Draining")


def test_a_message_of_any_length_fits() -> None:
    said = written(None, trouble=PoolTrouble("Refused", "x" * 100_000))
    assert all(len(one["message"]) <= 1024 for one in said["conditions"])


def test_the_same_facts_make_the_same_status() -> None:
    """Otherwise each look would be a write."""
    before = pool()
    before.body["status"] = written(deployment())
    assert written(deployment(), of=before, now=NOW + timedelta(minutes=5)) == before.status
