"""What the state of a pod says about a worker in it, and that nothing odd condemns one."""

from __future__ import annotations

import copy
import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.pods import AFTER, UID, container, pod, running, stamp, terminated
from waybill.ids import new_id
from waybill_engine.pods.verdicts import ALIVE, Fate, PodVerdict, PodWorker, judge

REGISTERED = datetime(2026, 11, 18, 12, 0, 30, 500_000, UTC)
WORKER = PodWorker(new_id(), "worker-1", "waybill", "waybill-worker-x1", UID, REGISTERED)
OLD_WORKER = PodWorker(new_id(), "worker-1", "waybill", "waybill-worker-x1", UID)
"""Of a release that does not write down when it registered."""

LATER = "2026-11-18T12:05:02Z"
MUCH_LATER = "2026-11-18T12:09:00Z"


CRASH_LOOP = {"waiting": {"reason": "CrashLoopBackOff"}}
OOM = terminated(137, "OOMKilled")
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
SIDECAR = container(running(), name="proxy")

EARLIER = terminated(137, "OOMKilled", "2026-11-18T11:59:00Z", "2026-11-18T12:00:20Z")
"""How the container before the worker's ended."""
RUNS = container(running())
PROXY_RESTARTED = container(running(LATER), OOM, 3, "proxy")

ALIVE_ALL_THE_SAME = {
    "it runs in the container that it registered in": pod("Running", RUNS),
    "its container was restarted before it registered": pod("Running", container(running(), EARLIER, 1)),
    "the status shows the container before its own, which waits": pod("Running", container(CRASH_LOOP, EARLIER, 1)),
    "the status shows the container before its own, which ended": pod("Running", container(EARLIER)),
    "it is asked to leave, and still runs": pod("Running", RUNS, leaving=True),
    "it is to be disrupted, and still runs": pod("Running", RUNS, conditions=[DISRUPTED]),
    "it is not ready": pod("Running", RUNS, conditions=[{"type": "Ready", "status": "False"}]),
    "its node does not answer": pod("Unknown", RUNS),
    "its node does not answer, as Kubernetes says it today": pod("Running", RUNS, reason="NodeLost"),
    "a pod that is only being started": pod("Pending", container({"waiting": {"reason": "ContainerCreating"}})),
    "its node's clock was put back before it registered": pod("Running", container(running(AFTER))),
    "another container of its pod was killed": pod("Running", RUNS, container(OOM, name="proxy")),
    "another container of its pod was restarted": pod("Running", RUNS, PROXY_RESTARTED),
    "containers, none of which is a worker's": pod("Running", SIDECAR, container(OOM, name="other")),
    "no containers": pod("Running"),
}

DEAD = {
    "no pod": (None, PodVerdict(Fate.GONE, seen=False)),
    "another pod of its name": (
        {**pod("Running", container(running())), "metadata": {"uid": "another"}},
        PodVerdict(Fate.GONE, seen=False),
    ),
    "OOM killed, and started again": (
        pod("Running", container(running(LATER), OOM, 1)),
        PodVerdict(Fate.OOM_KILLED, 137),
    ),
    "OOM killed, and not started again yet": (pod("Running", container(OOM)), PodVerdict(Fate.OOM_KILLED, 137)),
    "OOM killed, in a crash loop": (pod("Running", container(CRASH_LOOP, OOM, 4)), PodVerdict(Fate.OOM_KILLED, 137)),
    "OOM killed while it was asked to leave": (
        pod("Running", container(OOM), leaving=True),
        PodVerdict(Fate.OOM_KILLED, 137),
    ),
    "OOM killed in a pod that is not started again": (pod("Failed", container(OOM)), PodVerdict(Fate.OOM_KILLED, 137)),
    "crashed, and started again": (
        pod("Running", container(running(LATER), terminated(139), 1)),
        PodVerdict(Fate.CRASHED, 139),
    ),
    "crashed beside a sidecar": (
        pod("Running", SIDECAR, container(running(LATER), terminated(1), 1)),
        PodVerdict(Fate.CRASHED, 1),
    ),
    "the only container has another name": (
        pod("Running", container(running(LATER), terminated(1), 1, "main")),
        PodVerdict(Fate.CRASHED, 1),
    ),
    "started again twice, so that nobody knows how it ended": (
        pod("Running", container(running(MUCH_LATER), terminated(137, "OOMKilled", AFTER, LATER), 2)),
        PodVerdict(Fate.CRASHED),
    ),
    "crashed twice, and not started again yet": (
        pod("Running", container(CRASH_LOOP, terminated(137, "OOMKilled", LATER, MUCH_LATER), 2)),
        PodVerdict(Fate.CRASHED),
    ),
    "crashed in the second it registered": (
        pod("Running", container(running(LATER), terminated(1, until="2026-11-18T12:00:30Z"), 1)),
        PodVerdict(Fate.CRASHED, 1),
    ),
    "started again, and its end is not told": (
        pod("Running", container(running(LATER), {}, 1)),
        PodVerdict(Fate.CRASHED),
    ),
    "its node was restarted": (
        pod("Running", container(running(LATER), terminated(255, "Unknown"), 1)),
        PodVerdict(Fate.NODE_LOST),
    ),
    "its node lost the container": (
        pod("Running", container(running(LATER), terminated(137, "ContainerStatusUnknown", None, None), 1)),
        PodVerdict(Fate.NODE_LOST),
    ),
    "ended in order": (pod("Succeeded", container(terminated(0, "Completed"))), PodVerdict(Fate.GONE)),
    "ended in order, and started again": (
        pod("Running", container(running(LATER), terminated(0, "Completed"), 1)),
        PodVerdict(Fate.GONE),
    ),
    "crashed, and is not started again": (pod("Failed", container(terminated(3))), PodVerdict(Fate.CRASHED, 3)),
    "killed after its grace period": (pod("Running", container(terminated(137)), leaving=True), PodVerdict(Fate.GONE)),
    "failed, and nothing is known": (pod("Failed"), PodVerdict(Fate.GONE)),
    "evicted": (pod("Failed", container(terminated(137)), reason="Evicted"), PodVerdict(Fate.EVICTED)),
    "evicted without a status of its containers": (pod("Failed", reason="Evicted"), PodVerdict(Fate.EVICTED)),
    "evicted for the memory of its node": (pod("Failed", container(OOM), reason="Evicted"), PodVerdict(Fate.EVICTED)),
    "preempted": (pod("Failed", container(terminated(137)), reason="Preempting"), PodVerdict(Fate.PREEMPTED)),
    "its node was shut down": (
        pod("Failed", container(terminated(143)), reason="Terminated"),
        PodVerdict(Fate.NODE_LOST),
    ),
    "failed for a reason of the cluster": (
        pod("Failed", container(terminated(137)), reason="DeadlineExceeded"),
        PodVerdict(Fate.GONE),
    ),
    **{
        f"disrupted: {reason}": (
            pod("Failed", container(terminated(137)), conditions=[{**DISRUPTED, "reason": reason}]),
            PodVerdict(fate),
        )
        for reason, fate in (
            ("PreemptionByScheduler", Fate.PREEMPTED),
            ("EvictionByEvictionAPI", Fate.EVICTED),
            ("TerminationByKubelet", Fate.EVICTED),
            ("DeletionByTaintManager", Fate.NODE_LOST),
            ("DeletionByPodGC", Fate.NODE_LOST),
            ("SomethingNew", Fate.GONE),
        )
    },
    "no longer to be disrupted": (
        pod("Failed", container(terminated(3)), conditions=[{**DISRUPTED, "status": "False"}]),
        PodVerdict(Fate.CRASHED, 3),
    ),
}


@pytest.mark.parametrize("told", ALIVE_ALL_THE_SAME)
def test_it_is_alive_as_far_as_the_server_knows(told: str) -> None:
    assert judge(WORKER, ALIVE_ALL_THE_SAME[told]) == ALIVE


@pytest.mark.parametrize("told", DEAD)
def test_it_is_dead_and_why(told: str) -> None:
    state, verdict = DEAD[told]
    assert judge(WORKER, state) == verdict
    assert verdict.dead
    assert verdict.charged == (verdict.fate in (Fate.OOM_KILLED, Fate.CRASHED))
    assert str(verdict.says).endswith(".")


def test_the_end_of_a_watch_says_that_this_very_pod_is_gone() -> None:
    assert judge(WORKER, pod("Running", container(running())), deleted=True) == PodVerdict(Fate.GONE)
    assert judge(WORKER, pod("Running", container(OOM)), deleted=True) == PodVerdict(Fate.OOM_KILLED, 137)
    assert judge(WORKER, pod("Unknown"), deleted=True) == PodVerdict(Fate.GONE)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (pod("Running", container(running(LATER), OOM, 1)), ALIVE),
        (pod("Running", container(OOM)), ALIVE),
        (pod("Failed", container(OOM)), PodVerdict(Fate.OOM_KILLED, 137)),
        (pod("Failed", container(OOM, OOM, 1)), PodVerdict(Fate.GONE)),
        (pod("Failed", container(terminated(137)), reason="Evicted"), PodVerdict(Fate.EVICTED)),
        (None, PodVerdict(Fate.GONE, seen=False)),
    ],
)
def test_without_the_nodes_clock_only_the_end_of_a_pod_tells(state: dict[str, Any] | None, verdict: PodVerdict) -> None:
    assert judge(OLD_WORKER, state) == verdict


def test_the_sentence_names_the_exit_code() -> None:
    assert str(PodVerdict(Fate.CRASHED, 139).says) == (
        "The container working on this document ended with exit code 139."
    )
    assert "more memory than it may" in str(PodVerdict(Fate.OOM_KILLED, 137).says)


ODD: tuple[Any, ...] = (
    None, 0, -1, True, 1e99, float("nan"), "", "Running", "x" * 10_000, "2026-13-45T99:99:99Z", "2026-11-18T12:05:00",
    "9999-12-31T23:59:59.999999+23:59", "0001-01-01T00:00:00-23:59", [], [None], [[]], {}, {"terminated": None},
    {"running": []}, {"startedAt": 7}, 2**70,
)  # fmt: skip


def places(found: Any) -> list[tuple[Any, Any]]:
    """Every container and key in a tree of JSON."""
    if isinstance(found, dict):
        return [place for key, value in found.items() for place in [(found, key), *places(value)]]
    if isinstance(found, list):
        return [place for key, value in enumerate(found) for place in [(found, key), *places(value)]]
    return []


def test_nothing_absurd_raises() -> None:
    for state in ODD:
        if isinstance(state, dict):
            judge(WORKER, state)
    whole = [*ALIVE_ALL_THE_SAME.values(), *(state for state, _ in DEAD.values() if state)]
    chance = random.Random(3)
    for state, _ in itertools.product(whole, range(150)):
        changed = copy.deepcopy(state)
        for _ in range(chance.randint(1, 3)):
            parent, key = chance.choice(places(changed))
            parent[key] = copy.deepcopy(chance.choice(ODD))
        verdict = judge(WORKER, changed)
        assert isinstance(verdict.fate, Fate)
        assert not verdict.dead or str(verdict.says).endswith(".")


def test_absent_fields_never_condemn_a_worker_that_runs() -> None:
    for told, state in ALIVE_ALL_THE_SAME.items():
        for number in range(len(places(state))):
            changed = copy.deepcopy(state)
            parent, key = places(changed)[number]
            del parent[key]
            if key == "running":
                continue  # then it does not say that it runs
            assert judge(WORKER, changed) == ALIVE, (told, key)


def test_a_container_is_never_taken_for_one_before_or_after_it() -> None:
    """Lives of a container, one after the other, seen at any time: only workers of ended lives are dead."""
    chance = random.Random(7)
    for _ in range(2_000):
        lives, now = [], datetime(2026, 11, 18, tzinfo=UTC)
        for _ in range(chance.randint(1, 4)):
            begun = now + timedelta(seconds=chance.uniform(1.0, 30.0))
            registered = begun + timedelta(seconds=chance.uniform(0.5, 3.0))
            ended = registered + timedelta(seconds=chance.uniform(0.0, 60.0))
            lives.append((begun, registered, ended))
            now = ended
        shown = chance.randrange(len(lives))
        still_runs = chance.random() < 0.5
        states = [terminated(1, "Error", stamp(begun), stamp(ended)) for begun, _, ended in lives]
        state = running(stamp(lives[shown][0])) if still_runs else chance.choice([states[shown], CRASH_LOOP])
        last = states[shown] if state is CRASH_LOOP else states[shown - 1] if shown else {}
        told = pod("Running", container(state, last, shown + (state is CRASH_LOOP)))
        for number, (_, registered, _) in enumerate(lives):
            verdict = judge(PodWorker(WORKER.id, "w", "n", "p", UID, registered), told)
            if number > shown or (number == shown and still_runs):
                assert verdict == ALIVE
            elif number < shown:
                assert verdict.dead
