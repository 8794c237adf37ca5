"""Workers whose pod is dead give their jobs back at once, and only a job that may be to blame is charged."""

from __future__ import annotations

import itertools
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support import handlers
from support.clock import Clock
from support.engine import (
    OTHER,
    Connect,
    events,
    find_contradictions,
    one_job,
    row,
    some_jobs,
    take,
    take_isolated,
)
from support.patience import eventually
from support.pods import UID, pod, restarted_after
from support.workers import SLOW, StartWorker, effects_happened_once, the_end, the_worker, until_started
from waybill.db.database import Connection
from waybill.errors import LeaseLost
from waybill.ids import new_id
from waybill.messages import languages
from waybill_engine import JobKind, NewJob, RetryPolicy, enqueue
from waybill_engine.control import cancel
from waybill_engine.explain import explain
from waybill_engine.finish import succeed
from waybill_engine.lease import WorkerInfo, drain, fence, register, renew
from waybill_engine.pods.deaths import Settled, settle_dead, workers_in_pods
from waybill_engine.pods.verdicts import ALIVE, Fate, PodVerdict, judge

_numbers = itertools.count(1)

OOM = PodVerdict(Fate.OOM_KILLED, 137)
CRASHED = PodVerdict(Fate.CRASHED, 139)
NOT_CHARGED = [Fate.GONE, Fate.EVICTED, Fate.PREEMPTED, Fate.NODE_LOST]


async def worker_in_pod(
    connection: Connection, *, uid: str = UID, isolating: bool = False, ttl: float = 60.0
) -> WorkerInfo:
    number = next(_numbers)
    worker = WorkerInfo(
        id=new_id(),
        name=f"waybill-worker-x1:{number}",
        host="waybill-worker-x1",
        pid=number,
        version="test",
        queues=["default"],
        kinds=["work", "other"],
        concurrency=10,
        isolating=isolating,
        pod_namespace="waybill",
        pod_name="waybill-worker-x1",
        pod_uid=uid,
        node_started_at=datetime.now(UTC),
    )
    await register(connection, worker, ttl)
    return worker


async def settle(connection: Connection, verdict: PodVerdict) -> list[Settled]:
    """Settle all workers in pods by this verdict."""
    return await settle_dead(connection, [(one, verdict) for one in await workers_in_pods(connection)])


async def test_only_living_workers_in_pods_are_listed(hot: Connection) -> None:
    here = await worker_in_pod(hot)
    leaving = await worker_in_pod(hot)
    await drain(hot, leaving.id)
    stopped = await worker_in_pod(hot)
    await hot.execute("UPDATE workers SET state = 'stopped' WHERE id = $1", stopped.id)
    await register(hot, WorkerInfo(new_id(), "w", "here", 1, "test", ["default"], ["work"], 1), 60.0)

    found = await workers_in_pods(hot)

    assert [one.id for one in found] == [here.id, leaving.id]
    assert (found[0].namespace, found[0].pod, found[0].uid) == ("waybill", "waybill-worker-x1", UID)
    assert found[0].node_started_at == here.node_started_at


@pytest.mark.parametrize("fate", NOT_CHARGED)
async def test_what_the_cluster_took_away_is_released_and_nobody_is_charged(hot: Connection, fate: Fate) -> None:
    jobs = await some_jobs(hot, 3)
    worker = await worker_in_pod(hot)
    await take(hot, worker)

    (settled,) = await settle(hot, PodVerdict(fate))

    assert {one.event for one in settled.jobs} == {"released"}
    for job_id in jobs:
        job = await row(hot, job_id)
        assert (job["state"], job["attempts"], job["crashes"], job["isolate"]) == ("queued", 0, 0, False)
        assert job["error_code"] is None
    assert await hot.fetchval("SELECT state FROM workers WHERE id = $1", worker.id) == "gone"
    assert await settle(hot, PodVerdict(fate)) == []
    assert await find_contradictions(hot) == []


async def test_the_living_are_left_alone(hot: Connection) -> None:
    await some_jobs(hot, 1)
    worker = await worker_in_pod(hot)
    await take(hot, worker)
    assert await settle(hot, ALIVE) == []
    assert await renew(hot, worker.id, 60.0)


async def test_a_job_that_ran_alone_is_charged_and_its_error_names_the_oom_kill(hot: Connection) -> None:
    job_id = await one_job(hot)
    await take(hot, await worker_in_pod(hot))

    (settled,) = await settle(hot, OOM)

    assert [(one.id, one.event) for one in settled.jobs] == [(job_id, "crashed")]
    job = await row(hot, job_id)
    assert (job["state"], job["attempts"], job["crashes"]) == ("queued", 1, 1)
    assert (job["error_code"], job["error_message"]) == (
        "WORKER_CRASHED",
        "The program working on this document used more memory than it may, and was killed.",
    )
    assert json.loads(job["error_detail"]) == {"cause": "oom_killed", "key": "worker_lost.oom_killed", "params": {}}


async def test_a_document_that_needs_too_much_memory_is_given_up_with_that_cause(hot: Connection) -> None:
    job_id = await one_job(hot, JobKind("work", retry=RetryPolicy(retries=9), max_crashes=2))
    for number in range(2):
        worker = await worker_in_pod(hot, isolating=number > 0)
        assert await (take_isolated if number else take)(hot, worker)
        await settle(hot, OOM)

    assert await events(hot, job_id) == ["crashed", "dead_lettered"]
    answer = await explain(hot, job_id)
    assert "used more memory than it may" in answer.sentence
    indonesian = languages()["id"].say(answer.key, **answer.params)
    assert "memakai memori melebihi batas" in indonesian


async def test_the_exit_code_of_a_crash_is_kept(hot: Connection) -> None:
    job_id = await one_job(hot)
    await take(hot, await worker_in_pod(hot))
    await settle(hot, CRASHED)
    job = await row(hot, job_id)
    assert job["error_message"] == "The container working on this document ended with exit code 139."
    assert json.loads(job["error_detail"])["params"] == {"exit_code": 139}


async def test_of_several_jobs_none_is_charged_and_all_run_alone_next(hot: Connection) -> None:
    jobs = await some_jobs(hot, 3)
    await take(hot, await worker_in_pod(hot))
    await settle(hot, OOM)
    for job_id in jobs:
        job = await row(hot, job_id)
        assert (job["crashes"], job["isolate"], job["error_code"]) == (0, True, None)
        assert await events(hot, job_id) == ["suspected"]


async def test_jobs_of_two_processes_of_one_container_die_together_so_none_is_charged(hot: Connection) -> None:
    first, second = await some_jobs(hot, 2)
    for worker in (await worker_in_pod(hot), await worker_in_pod(hot)):
        assert len(await take(hot, worker, 1)) == 1
    settled = await settle(hot, OOM)
    assert len(settled) == 2
    for job_id in (first, second):
        assert (await row(hot, job_id))["crashes"] == 0
        assert await events(hot, job_id) == ["suspected"]


async def test_jobs_of_two_pods_die_apart(hot: Connection) -> None:
    jobs = await some_jobs(hot, 2)
    for worker in (await worker_in_pod(hot), await worker_in_pod(hot, uid=str(uuid.uuid4()))):
        assert len(await take(hot, worker, 1)) == 1
    await settle(hot, OOM)
    assert [await events(hot, job_id) for job_id in jobs] == [["crashed"], ["crashed"]]


async def test_the_suspect_is_charged_that_killed_its_container_and_not_those_beside_it(hot: Connection) -> None:
    suspect = await one_job(hot)
    await hot.execute("UPDATE jobs SET isolate = true")
    assert await take_isolated(hot, await worker_in_pod(hot, isolating=True))
    beside = await some_jobs(hot, 1, OTHER)
    await take(hot, await worker_in_pod(hot))

    await settle(hot, OOM)

    assert await events(hot, suspect) == ["crashed"]
    assert await events(hot, beside[0]) == ["suspected"]


async def test_a_deploy_costs_nothing_but_memory_does(hot: Connection) -> None:
    killed, greedy = await some_jobs(hot, 2)
    for uid, verdict in ((UID, PodVerdict(Fate.CRASHED, 137)), (str(uuid.uuid4()), OOM)):
        worker = await worker_in_pod(hot, uid=uid)
        assert len(await take(hot, worker, 1)) == 1
        await drain(hot, worker.id)
        await settle(hot, verdict)
        await hot.execute("UPDATE jobs SET run_at = now(), state = 'scheduled' WHERE id = $1", killed)
    assert await events(hot, killed) == ["released"]
    assert await events(hot, greedy) == ["crashed"]


async def test_a_job_that_should_stop_is_cancelled_and_not_blamed(hot: Connection) -> None:
    job_id = await one_job(hot)
    await take(hot, await worker_in_pod(hot))
    await cancel(hot, job_id)
    await settle(hot, OOM)
    assert await events(hot, job_id) == ["cancel_requested", "cancelled"]


async def test_history_and_explanation_say_what_became_of_the_worker(hot: Connection) -> None:
    job_id = await one_job(hot)
    await take(hot, await worker_in_pod(hot))
    await settle(hot, PodVerdict(Fate.EVICTED))
    await worker_in_pod(hot, uid=str(uuid.uuid4()))

    detail = json.loads(await hot.fetchval("SELECT detail FROM job_events WHERE job_id = $1", job_id))
    answer = await explain(hot, job_id)

    assert (detail["cause"], detail["message"]) == ("evicted", "Its worker's pod was evicted.")
    assert answer.sentence == ("Its worker's pod was evicted. It is next: the first worker with a free slot takes it.")
    assert answer.facts["lost"] == "evicted"
    worker = (await workers_in_pods(hot))[0]
    await take(hot, await worker_in_pod(hot, uid=worker.uid))
    assert (await explain(hot, job_id)).lost is None, "it runs again"


async def test_a_worker_that_was_wrongly_judged_dead_changes_nothing(hot: Connection) -> None:
    await one_job(hot)
    worker = await worker_in_pod(hot)
    (claimed,) = await take(hot, worker)
    await settle(hot, PodVerdict(Fate.GONE))

    assert not await renew(hot, worker.id, 60.0)
    with pytest.raises(LeaseLost):
        await fence(hot, worker.id, claimed.id, claimed.token)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == set()
    other = await worker_in_pod(hot, uid=str(uuid.uuid4()))
    (again,) = await take(hot, other)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == set()
    assert await succeed(hot, other.id, [(again.id, again.token)]) == {again.id}


async def test_a_pod_that_nobody_has_seen_is_gone_only_when_its_worker_is_silent(hot: Connection, clock: Clock) -> None:
    """With two clusters on one database, it may be in the other one."""
    await one_job(hot)
    worker = await worker_in_pod(hot)
    await take(hot, worker)
    unseen = judge((await workers_in_pods(hot))[0], None)
    assert await settle(hot, unseen) == []
    await clock.forward(20.0)
    await renew(hot, worker.id, 60.0)
    await clock.forward(20.0)
    assert await settle(hot, unseen) == [], "it renews its lease every 20 s"
    await clock.forward(5.0)
    (settled,) = await settle(hot, unseen)
    assert [one.event for one in settled.jobs] == ["released"]


async def test_a_locked_job_keeps_nobody_waiting(hot: Connection, connect: Connect) -> None:
    stuck = await one_job(hot)
    await take(hot, await worker_in_pod(hot))
    free = await one_job(hot)
    await take(hot, await worker_in_pod(hot, uid=str(uuid.uuid4())))
    other = await connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", stuck)
        assert [one.id for done in await settle(hot, OOM) for one in done.jobs] == [free]
    assert [one.id for done in await settle(hot, OOM) for one in done.jobs] == [stuck]


async def test_two_who_settle_at_once_settle_once(hot: Connection, connect: Connect) -> None:
    job_id = await one_job(hot)
    await take(hot, await worker_in_pod(hot))
    found = await workers_in_pods(hot)
    for connection in (hot, await connect()):
        await settle_dead(connection, [(one, OOM) for one in found])
    assert await events(hot, job_id) == ["crashed"]


# Real processes

IN_A_POD = {
    **SLOW,
    "worker_pod_namespace": "waybill",
    "worker_pod_name": "waybill-worker-x1",
    "worker_pod_uid": UID,
    "rescue_interval": 3600,
}


async def judged(connection: Connection, state: dict[str, Any] | None) -> list[Settled]:
    found = await workers_in_pods(connection)
    return await settle_dead(connection, [(one, judge(one, state)) for one in found])


async def registered(connection: Connection) -> datetime:
    at: datetime = await connection.fetchval("SELECT node_started_at FROM workers WHERE state = 'active'")
    return at


async def test_a_killed_worker_gives_its_job_back_long_before_its_lease_ends(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    victim = start_worker(worker_concurrency=1, **IN_A_POD)
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate)
    at = await registered(connection)
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60.0
    assert await judged(connection, restarted_after(at.replace(year=2020), 137, "OOMKilled")) == [], (
        "an older container"
    )
    victim.kill()

    (settled,) = await judged(connection, restarted_after(at, 137, "OOMKilled"))

    assert settled.verdict.fate is Fate.OOM_KILLED
    assert [(one.id, one.event) for one in settled.jobs] == [(job.id, "crashed")]
    (gate / "open").touch()
    start_worker(worker_concurrency=1, **{**IN_A_POD, "worker_pod_uid": str(uuid.uuid4())})
    ended = await the_end(connection, job.id)
    assert (ended["state"], ended["crashes"], ended["attempts"]) == ("succeeded", 1, 1)
    await effects_happened_once(connection, 1)


async def test_a_worker_that_lives_on_after_its_verdict_stops_its_run_and_changes_nothing(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_concurrency=1, **{**IN_A_POD, "lease_ttl": 6, "heartbeat_interval": 1})
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate)
    condemned = await the_worker(connection)

    (settled,) = await judged(connection, pod("Failed", reason="Evicted"))

    assert [one.event for one in settled.jobs] == ["released"]

    async def came_back() -> bool:
        return bool(await connection.fetchval("SELECT count(*) FROM workers WHERE state = 'active'"))

    await eventually(came_back)
    assert await the_worker(connection) != condemned, "a worker that is gone comes back under another id"
    await until_started(gate, 2)
    (gate / "open").touch()
    ended = await the_end(connection, job.id)
    assert (ended["state"], ended["lease_token"], ended["crashes"]) == ("succeeded", 2, 0)
    await effects_happened_once(connection, 1)
