"""Hypothesis drives the engine and a simple model of it side by side, and compares them after every step.

Time moves in steps of hundreds of seconds and every delay ends on a fifty, so that the seconds a run really takes
decide nothing.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.engine import (
    ENDS_OF_RUNS,
    NO_SETTLE,
    an_hour_ahead,
    failure,
    purge,
    start_worker,
    stored,
    take,
    take_isolated,
)
from support.engine_model import Model, ModelJob, ModelWorker
from waybill.db.database import Connection
from waybill.db.session_settings import ONE_PLAN
from waybill.errors import Cancelled, Conflict, LeaseLost, Refused
from waybill.failures import classify
from waybill.ids import new_id
from waybill_engine import (
    ClaimedJob,
    JobKind,
    NewJob,
    SequenceKey,
    Unique,
    UniqueScope,
    add_children,
    enqueue_family,
    retention,
)
from waybill_engine.artefacts import publish
from waybill_engine.caps import remove_cap, set_cap
from waybill_engine.control import cancel, pause, resume, retry
from waybill_engine.enqueue import enqueue_many
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import RunOutcome, cancelled, judge, released, settle, succeed
from waybill_engine.lease import Progress, WorkerInfo, drain, holdings, renew, write_progress
from waybill_engine.models import FINAL
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker
from waybill_engine.retry import RetryPolicy
from waybill_engine.snooze import Snooze

T = TypeVar("T")

LATER = 1050.0
TTL = 1550.0
WINDOW = 2550.0
POLICY = RetryPolicy(retries=2, base=LATER, jitter=0.0, cap=LATER)
KINDS = {
    "work": JobKind("work", retry=POLICY, max_crashes=2),
    "hard": JobKind("hard", retry=RetryPolicy(retries=5, base=LATER, jitter=0.0, cap=LATER), max_crashes=3),
    "once": JobKind("once", retry=RetryPolicy(retries=0, base=LATER, jitter=0.0)),
}
QUEUES = ("default", "night")
FORGET_CLAIM = """
UPDATE jobs SET state = 'queued', lease_owner = NULL, lease_token = lease_token - 1, started_at = NULL WHERE id = $1
"""
# For so few rows a tenth of what TRUNCATE takes, which makes every index anew.
EMPTY = ";".join(
    f"DELETE FROM {table}"
    for table in ("jobs", "job_events", "job_artefacts", "workers", "queues", "caps", "tenants", "missed_turns")
)
Wanted = tuple[str, str, str, int, float, str | None, UniqueScope, tuple[str, int] | None]

which = st.integers(min_value=0, max_value=1_000)
several = st.lists(which, min_size=1, max_size=4)
seldom = st.sampled_from((False, False, False, False, True))
mostly = st.sampled_from((True, True, True, False))
new_jobs = st.lists(
    st.tuples(
        st.sampled_from(tuple(KINDS)),
        st.sampled_from(QUEUES),
        st.sampled_from(("acme", "zeta")),
        st.integers(min_value=-1, max_value=2),
        st.sampled_from((0.0, 0.0, 0.0, LATER)),
        st.sampled_from((None, None, None, "k1", "k2")),
        st.sampled_from(tuple(UniqueScope)),
        st.sampled_from((None, None, None, None, None, None, None, ("s1", 1), ("s2", 2))),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class Ground:
    """The one database all examples play on."""

    loop: asyncio.AbstractEventLoop
    connection: Connection

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)


class EngineMachine(RuleBasedStateMachine):
    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.run, self.on = ground.run, ground.connection
        self.model = Model()
        self.infos: list[WorkerInfo] = []
        self.beliefs: list[tuple[WorkerInfo, ClaimedJob]] = []
        """Every lease any worker ever got. Workers never forget, so most of these are stale."""
        self.rows: dict[Any, asyncpg.Record] = {}

    @initialize()
    def begin(self) -> None:
        self.run(
            self.on.execute(
                f"{EMPTY};"
                "INSERT INTO tenants (name, top_priority) VALUES ('acme', 2), ('zeta', 2);"
                "UPDATE test_clock.shift SET seconds = 0"
            )
        )
        self.start_a_worker(("work", "hard", "once"), QUEUES)
        self.start_a_worker(("work", "once"), ("default",))

    # Choosing

    def some_worker(self, number: int) -> tuple[WorkerInfo, ModelWorker]:
        """Mostly one that can work; sometimes one that is draining, silent or gone."""
        able = [info for info in self.infos if self.model.workers[info.id].state == "active"]
        if not able:
            self.start_a_worker(tuple(KINDS), QUEUES)
            able = self.infos[-1:]
        among = self.infos if number % 5 == 4 else able
        info = among[number % len(among)]
        return info, self.model.workers[info.id]

    def some_beliefs(self, numbers: list[int]) -> list[tuple[WorkerInfo, ClaimedJob]]:
        """Claims that are good, claims whose job another run has, and any: all three are tried often."""

        def running(claimed: ClaimedJob, *, mine: bool) -> bool:
            job = self.model.jobs.get(claimed.id)
            if job is None or job.state != "running":
                return False
            return ((job.token, job.owner) == (claimed.token, claimed.worker_id)) is mine

        groups = [
            [one for one in self.beliefs if running(one[1], mine=True)],
            [one for one in self.beliefs if running(one[1], mine=False)],
            self.beliefs,
        ]
        chosen = []
        for number in numbers:
            group = groups[number % 3] or groups[0] or self.beliefs
            chosen.append(group[number // 3 % len(group)])
        return chosen

    # Workers

    @rule(kinds=st.sampled_from((tuple(KINDS), ("work", "hard"))), queues=st.sampled_from((QUEUES, ("night",))))
    @precondition(lambda self: sum(one.state == "active" for one in self.model.workers.values()) < 3)
    def start_a_worker(self, kinds: tuple[str, ...], queues: tuple[str, ...]) -> None:
        info = self.run(start_worker(self.on, queues=queues, kinds=kinds, ttl=TTL))
        self.infos.append(info)
        self.model.workers[info.id] = ModelWorker(info.id, queues, kinds, self.model.now + TTL)

    def beat(self, info: WorkerInfo, worker: ModelWorker) -> None:
        assert self.run(renew(self.on, info.id, TTL)) is self.model.renew(worker, TTL)
        held = self.run(holdings(self.on, info.id))
        assert held.tokens == self.model.running(worker)
        assert held.stop == {job_id for job_id in held.tokens if self.model.jobs[job_id].stop}

    @precondition(lambda self: sum(one.state == "active" for one in self.model.workers.values()) > 2)
    @rule(number=which)
    def drain(self, number: int) -> None:
        info, worker = self.some_worker(number)
        self.run(drain(self.on, info.id))
        if worker.state == "active":
            worker.state = "draining"

    # Jobs

    @rule(wanted=new_jobs)
    def enqueue(self, wanted: list[Wanted]) -> None:
        pairs = [self.new_job(one) for one in wanted]
        expected = [self.model.enqueue(told, window) for _, told, window in pairs]
        answers = self.run(enqueue_many(self.on, [job for job, _, _ in pairs], as_operator=True))
        assert [(one.id, one.created) for one in answers] == expected

    def new_job(self, wanted: Wanted) -> tuple[NewJob, ModelJob, float | None]:
        """A job for the engine, the same for the model, and its window."""
        kind, queue, tenant, priority, delay, key, scope, sequence = wanted
        window = WINDOW if key and scope is UniqueScope.WINDOW else None
        job = NewJob(
            KINDS[kind],
            tenant,
            queue=queue,
            priority=priority,
            delay=delay,
            unique=Unique(key, scope, window) if key else None,
            # Every third enqueuer's clock is an hour ahead. That must not matter.
            id=an_hour_ahead(new_id()) if len(self.model.jobs) % 3 == 0 else new_id(),
            sequence=SequenceKey(*sequence) if sequence else None,
        )
        told = ModelJob(
            id=job.id,
            tenant=tenant,
            kind=kind,
            queue=queue,
            priority=priority,
            max_attempts=KINDS[kind].retry.max_attempts,
            max_crashes=KINDS[kind].max_crashes,
            run_at=self.model.now + delay,
            created=self.model.steps,
            key=key,
            scope=scope.value if key else None,
            sequence=sequence[0] if sequence else None,
            at_once=sequence[1] if sequence else 1,
        )
        return job, told, window

    # Families

    def some_job(self, number: int, *, waiting: bool) -> uuid.UUID | None:
        found = sorted(job.id for job in self.model.jobs.values() if job.pending or not waiting)
        return found[number % len(found)] if found else None

    @rule(wanted=new_jobs, number=which, nested=st.booleans(), wrongly=seldom)
    def enqueue_a_family(self, wanted: list[Wanted], number: int, nested: bool, wrongly: bool) -> None:
        parent, parent_told, _ = self.new_job((*wanted[0][:4], 0.0, None, UniqueScope.ACTIVE, wanted[0][-1]))
        children = [self.new_job(one) for one in wanted[1:]]
        within = self.some_job(number, waiting=not wrongly) if nested else None
        told = [one for _, one, _ in children]
        if self.model.below_a_sequence(within, [parent_told, *told]) or (
            parent_told.sequence and any(one.sequence for one in told)
        ):
            with pytest.raises(Refused):
                self.run(enqueue_family(self.on, parent, [one[0] for one in children], within=within))
            self.model.happened["refused below a sequence"] += 1
            return
        expected = self.model.enqueue_family(parent_told, [one[1:] for one in children], within)
        enqueueing = enqueue_family(self.on, parent, [one[0] for one in children], within=within)
        if expected is None:
            with pytest.raises(Conflict):
                self.run(enqueueing)
        else:
            assert [(one.id, one.created) for one in self.run(enqueueing).children] == expected

    @precondition(lambda self: self.model.jobs)
    @rule(wanted=new_jobs, number=which, wrongly=seldom)
    def add_children(self, wanted: list[Wanted], number: int, wrongly: bool) -> None:
        if (parent_id := self.some_job(number, waiting=not wrongly)) is None:
            return
        children = [self.new_job(one) for one in wanted[:3]]
        if self.model.below_a_sequence(parent_id, [told for _, told, _ in children]):
            with pytest.raises(Refused):
                self.run(add_children(self.on, parent_id, [one[0] for one in children]))
            return
        expected = self.model.add_children(parent_id, [one[1:] for one in children])
        adding = add_children(self.on, parent_id, [one[0] for one in children])
        if expected is None:
            with pytest.raises(Conflict):
                self.run(adding)
        else:
            assert [(one.id, one.created) for one in self.run(adding)] == expected

    @precondition(lambda self: any(job.pending for job in self.model.jobs.values()))
    @rule(number=which, back=st.booleans())
    def cancel_a_family_and_perhaps_think_again(self, number: int, back: bool) -> None:
        """A parent that is retried while its children are still being stopped."""
        parent_id = self.some_job(number, waiting=True)
        assert parent_id is not None
        assert self.run(cancel(self.on, parent_id)).state == self.model.cancel(parent_id)
        if back:
            self.try_to_retry(parent_id)

    @precondition(lambda self: any(job.pending for job in self.model.jobs.values()))
    @rule(number=which, left=st.sampled_from((0, 0, 1)))
    def the_children_of_a_parent_end(self, number: int, left: int) -> None:
        """One by one, each in the way that is open to it; perhaps all but one."""
        parent_id = self.some_job(number, waiting=True)
        children = sorted(job.id for job in self.model.jobs.values() if job.parent == parent_id and job.active)
        for child_id in children[left:]:
            self.end(child_id)

    def end(self, job_id: uuid.UUID) -> None:
        """In the way that is open to it."""
        job = self.model.jobs[job_id]
        if job.state == "running":
            assert job.owner is not None
            done = self.run(succeed(self.on, job.owner, [(job_id, job.token)]))
            assert (job_id in done) is self.model.succeed(job_id, job.token, job.owner)
        else:
            assert self.run(cancel(self.on, job_id)).state == self.model.cancel(job_id)

    @precondition(lambda self: self.model.ended_children_of_waiting_parents())
    @rule(number=which)
    def retry_a_child_of_a_parent_that_waits(self, number: int) -> None:
        ended = self.model.ended_children_of_waiting_parents()
        self.try_to_retry(ended[number % len(ended)])

    @precondition(lambda self: self.model.ahead_of_parked())
    @rule(number=which)
    def a_job_that_others_are_parked_behind_ends(self, number: int) -> None:
        ahead = self.model.ahead_of_parked()
        self.end(ahead[number % len(ahead)])

    # Jobs are taken

    @precondition(lambda self: any(job.state == "queued" for job in self.model.jobs.values()))
    @rule(number=which, limit=st.integers(min_value=1, max_value=5), renewed=mostly)
    def claim(self, number: int, limit: int, renewed: bool) -> None:
        info, worker = self.some_worker(number)
        if renewed:
            self.beat(info, worker)
        claimed_jobs = self.run(take(self.on, info, limit))
        self.model.claim(worker, [(one.id, one.token) for one in claimed_jobs], limit, isolated=False)
        self.beliefs += [(info, claimed) for claimed in claimed_jobs]

    @rule(wanted=new_jobs, limit=st.integers(min_value=1, max_value=3))
    def work_arrives_and_is_taken(self, wanted: list[Wanted], limit: int) -> None:
        """What a fleet does most of the time; without it games are all talk."""
        self.enqueue(wanted)
        for info in self.infos:
            if self.model.workers[info.id].state == "active":
                self.claim(self.infos.index(info) * 5, limit, True)

    @precondition(lambda self: any(job.state == "scheduled" for job in self.model.jobs.values()))
    @rule(number=which)
    def what_was_put_off_comes_due_and_is_taken(self, number: int) -> None:
        self.time_passes(1100.0)
        self.promote()
        self.claim(number, 3, True)

    @precondition(lambda self: any(job.isolate and job.state == "queued" for job in self.model.jobs.values()))
    @rule(number=which, renewed=mostly)
    def claim_a_suspect(self, number: int, renewed: bool) -> None:
        info, worker = self.some_worker(number)
        if renewed:
            self.beat(info, worker)
        claimed_jobs = self.run(take_isolated(self.on, info))
        self.model.claim(worker, [(one.id, one.token) for one in claimed_jobs], 1, isolated=True)
        self.beliefs += [(info, claimed) for claimed in claimed_jobs]

    @precondition(lambda self: any(job.state == "scheduled" for job in self.model.jobs.values()))
    @rule()
    def promote(self) -> None:
        promoted = self.run(promote_due(self.on))
        assert promoted.count == self.model.promote()
        coming = [
            job.run_at - self.model.now
            for job in self.model.jobs.values()
            if job.state == "scheduled" and job.run_at < float("inf")  # children and turns come by no clock
        ]
        if coming:
            assert promoted.next_in == pytest.approx(min(coming), abs=49)
        else:
            assert promoted.next_in is None

    # What owners write, stale ones included

    @precondition(lambda self: self.beliefs)
    @rule(numbers=several, fraction=st.floats(min_value=0, max_value=1))
    def progress(self, numbers: list[int], fraction: float) -> None:
        news = {
            claimed.id: Progress(claimed.id, claimed.token, claimed.worker_id, fraction, "…")
            for _, claimed in self.some_beliefs(numbers)
        }
        written = self.run(write_progress(self.on, list(news.values())))
        assert written == {one.id for one in news.values() if self.model.fenced(one.id, one.token, one.worker_id)}

    @precondition(lambda self: self.beliefs)
    @rule(numbers=several)
    def succeed(self, numbers: list[int]) -> None:
        chosen = self.some_beliefs(numbers)
        worker_id = chosen[0][0].id
        batch = {(claimed.id, claimed.token) for info, claimed in chosen if info.id == worker_id}
        done = self.run(succeed(self.on, worker_id, list(batch)))
        assert done == {job_id for job_id, token in batch if self.model.succeed(job_id, token, worker_id)}

    @precondition(lambda self: self.beliefs)
    @rule(numbers=several, how=st.sampled_from(("retryable", "uncharged", "released")))
    def fail_for_now(self, numbers: list[int], how: str) -> None:
        self.fail(numbers, how)

    @precondition(lambda self: self.beliefs)
    @rule(numbers=several, how=st.sampled_from(("uncharged", "released", "snoozed")))
    def come_back_uncharged(self, numbers: list[int], how: str) -> None:
        self.fail(numbers, how)

    @precondition(lambda self: self.beliefs)
    @rule(numbers=several, how=st.sampled_from(("retryable", "permanent", "cancelled")))
    def fail_for_good(self, numbers: list[int], how: str) -> None:
        self.fail(numbers, how)

    def fail(self, numbers: list[int], how: str) -> None:
        beliefs = self.some_beliefs(numbers)
        worker_id = beliefs[0][0].id
        chosen = {claimed.id: claimed for info, claimed in beliefs if info.id == worker_id}
        ends = [(claimed.id, claimed.token, self.outcome(claimed, how)) for claimed in chosen.values()]
        states = self.run(settle(self.on, worker_id, ends))
        expected = {job_id: self.model.fail(job_id, token, worker_id, how, LATER) for job_id, token, _ in ends}
        assert {job_id: state.value for job_id, state in states.items()} == {
            job_id: state for job_id, state in expected.items() if state is not None
        }

    def outcome(self, claimed: ClaimedJob, how: str) -> RunOutcome:
        if how == "released":
            return released("not now")
        if how == "snoozed":
            return Snooze(LATER, "too early").outcome
        if how == "cancelled":
            return cancelled(classify(Cancelled()))
        trouble = failure(
            retryable=how != "permanent",
            charged=how != "uncharged",
            retry_after=LATER if how == "uncharged" else None,
        )
        return judge(claimed, trouble, KINDS[claimed.kind].retry)

    @precondition(lambda self: self.beliefs)
    @rule(number=which, name=st.sampled_from(("a", "b")))
    def publish(self, number: int, name: str) -> None:
        ((_, claimed),) = self.some_beliefs([number])
        job = self.model.fenced(claimed.id, claimed.token, claimed.worker_id)
        writing = publish(
            self.on, claimed.worker_id, claimed.id, claimed.token, name, stored(f"{claimed.token}"), "text/plain"
        )
        if job is not None:
            self.run(writing)
            job.artefacts[name] = claimed.token
        else:
            with pytest.raises(LeaseLost):
                self.run(writing)

    # Time, and the death of workers

    @rule(seconds=st.sampled_from((300.0, 1100.0, 1700.0)))
    def time_passes(self, seconds: float) -> None:
        self.run(self.on.execute("UPDATE test_clock.shift SET seconds = seconds + $1", seconds))
        self.model.now += seconds

    @precondition(lambda self: self.model.expired_workers())
    @rule()
    def rescue(self) -> None:
        rescued = self.run(rescue(self.on, settle_time=NO_SETTLE))
        expected = {job_id for worker in self.model.expired_workers() for job_id in self.model.rescue(worker)}
        assert {one.id for one in rescued} == expected

    @precondition(lambda self: any(job.owner is not None for job in self.model.jobs.values()))
    @rule(number=which)
    def a_worker_at_work_is_seen_to_die(self, number: int) -> None:
        """And another takes what it left, so that there is a stale owner beside a new one."""
        busy = [info for info in self.infos if self.model.running(self.model.workers[info.id])]
        self.bury(busy[number % len(busy)])
        self.bury(busy[number % len(busy)])  # twice is once
        self.claim_a_suspect(number + 1, True)

    @precondition(lambda self: self.model.running_suspects())
    @rule(number=which)
    def a_worker_dies_of_a_suspect(self, number: int) -> None:
        """It ran alone, so it is to blame."""
        suspects = self.model.running_suspects()
        owner = self.model.jobs[suspects[number % len(suspects)]].owner
        (info,) = [one for one in self.infos if one.id == owner]
        self.bury(info)

    @precondition(lambda self: any(job.state == "running" for job in self.model.jobs.values()))
    @rule(number=which)
    def a_failover_loses_a_claim(self, number: int) -> None:
        """The new primary never heard of the claim, and another worker takes the job: under the same token."""
        running = sorted(job.id for job in self.model.jobs.values() if job.state == "running" and not job.stop)
        if not running:
            return
        job_id = running[number % len(running)]
        was = self.model.jobs[job_id].owner
        self.run(self.on.execute(FORGET_CLAIM, job_id))
        self.model.forget_claim(job_id)
        self.rows.pop(job_id)  # its token falls, this once
        for info in self.infos:
            if info.id != was and self.model.workers[info.id].state == "active":
                self.claim(self.infos.index(info) * 5, 5, True)
        for info, claimed in self.beliefs:
            if (claimed.id, info.id) == (job_id, was):
                done = self.run(succeed(self.on, info.id, [(job_id, claimed.token)]))
                assert (job_id in done) is self.model.succeed(job_id, claimed.token, info.id)

    def bury(self, info: WorkerInfo) -> None:
        worker = self.model.workers[info.id]
        rescued = self.run(rescue_worker(self.on, info.id))
        expected = self.model.rescue(worker) if worker.state != "gone" else set()
        assert {one.id for one in rescued} == expected

    # People

    @precondition(lambda self: self.model.jobs)
    @rule(number=which)
    def cancel(self, number: int) -> None:
        job_id = sorted(self.model.jobs)[number % len(self.model.jobs)]
        expected = self.model.cancel(job_id)
        if expected is None:
            with pytest.raises(Conflict):
                self.run(cancel(self.on, job_id))
        else:
            assert self.run(cancel(self.on, job_id)).state == expected

    @precondition(lambda self: any(job.parked_for is not None for job in self.model.jobs.values()))
    @rule(number=which)
    def places_in_a_sequence_become_free(self, number: int) -> None:
        """The jobs that hold them are cancelled. Those that run have yet to be stopped."""
        parked = sorted(job.id for job in self.model.jobs.values() if job.parked_for is not None)
        waiting = self.model.jobs[parked[number % len(parked)]]
        mine = (waiting.tenant, waiting.kind, waiting.sequence)
        for job in sorted(self.model.jobs.values(), key=lambda one: one.id):
            if job.active and job.parked_for is None and (job.tenant, job.kind, job.sequence) == mine:
                assert self.run(cancel(self.on, job.id)).state == self.model.cancel(job.id)

    @precondition(
        lambda self: any(job.state in ("failed", "dead_letter", "cancelled") for job in self.model.jobs.values())
    )
    @rule(number=which)
    def retry_an_ended_job(self, number: int) -> None:
        ended = sorted(job.id for job in self.model.jobs.values() if not job.active)
        self.try_to_retry(ended[number % len(ended)])

    @precondition(lambda self: any(job.active for job in self.model.jobs.values()))
    @rule(number=which)
    def retry_a_job_that_has_not_ended(self, number: int) -> None:
        active = sorted(job.id for job in self.model.jobs.values() if job.active)
        self.try_to_retry(active[number % len(active)])

    def try_to_retry(self, job_id: Any) -> None:
        if self.model.retry(job_id):
            self.run(retry(self.on, job_id))
        else:
            with pytest.raises(Conflict):
                self.run(retry(self.on, job_id))

    @precondition(lambda self: not self.model.paused)
    @rule(queue=st.sampled_from(QUEUES))
    def pause(self, queue: str) -> None:
        self.run(pause(self.on, queue))
        self.model.paused.add(queue)

    @precondition(lambda self: self.model.paused)
    @rule(queue=st.sampled_from(QUEUES))
    def resume(self, queue: str) -> None:
        assert self.run(resume(self.on, queue)) is (queue in self.model.paused)
        self.model.paused.discard(queue)

    @precondition(lambda self: self.model.jobs)
    @rule(number=which, waiting=mostly)
    def delete(self, number: int, waiting: bool) -> None:
        """Its owner deletes it, or is erased. Often it is a child that a parent waits for."""
        idle = [job for job in self.model.jobs.values() if job.state != "running"]
        awaited = [job for job in idle if job.active and job.awaited]
        among = sorted(job.id for job in (awaited if waiting else idle))
        if among:
            job_id = among[number % len(among)]
            self.run(self.lock_and_delete(job_id))
            self.model.delete(job_id)

    async def lock_and_delete(self, job_id: uuid.UUID) -> None:
        async with self.on.transaction():
            await retention.delete(self.on, await retention.lock(self.on, [job_id]))

    @precondition(lambda self: sum(not job.active for job in self.model.jobs.values()) > 3)
    @rule()
    def purge(self) -> None:
        deleted = self.run(purge(self.on, older_than=timedelta(seconds=LATER), states=list(FINAL), batch=3))
        assert deleted == self.model.purge(LATER)

    @rule(
        tenant=st.sampled_from((None, "acme", "zeta")),
        kind=st.sampled_from((None, "work", "hard")),
        most=st.integers(min_value=0, max_value=3),
    )
    def cap(self, tenant: str | None, kind: str | None, most: int) -> None:
        if tenant is None and kind is None:
            return
        self.run(set_cap(self.on, most, tenant=tenant, kind=kind))
        self.model.caps[tenant, kind] = most

    @precondition(lambda self: self.model.caps)
    @rule(number=which)
    def lift_caps(self, number: int) -> None:
        """All but a few: a game in which nothing may run is soon over."""
        for tenant, kind in list(self.model.caps)[number % 2 :]:
            assert self.run(remove_cap(self.on, tenant=tenant, kind=kind))
            del self.model.caps[tenant, kind]

    # Why isn't it running?

    @precondition(lambda self: self.model.jobs)
    @rule(numbers=several)
    def explain_agrees_with_what_happens_next(self, numbers: list[int]) -> None:
        """Each job's reason, and then every worker that lives claims all it can, in a transaction that never was."""
        ids = sorted(self.model.jobs)
        chosen = {ids[number % len(ids)] for number in numbers}
        # One of every reason there is: some are so rare that chance alone would hardly ever choose them.
        chosen |= set({self.model.reason(one): one.id for one in self.model.jobs.values()}.values())
        reasons = {job_id: self.run(explain(self.on, job_id)) for job_id in chosen}
        taken = self.run(self.what_would_be_claimed())
        for job_id, answer in reasons.items():
            job = self.model.jobs[job_id]
            expected = self.model.reason(job)
            self.model.happened[f"explained: {expected}"] += 1
            if expected == "waiting":
                assert answer.reason in (Reason.NEXT, Reason.BEHIND_OTHERS)
                assert job.state == "scheduled" or job_id in taken or self.model.caps
            else:
                assert answer.reason == expected
                assert job_id not in taken or expected == "isolated"
            if answer.reason is Reason.NEXT and not answer.facts["takes_turns"] and job.state == "queued":
                rivals = {one.id for worker in self.model.serving(job) for one in self.model.claimable(worker)}
                ahead = (one for one in taken if one in rivals and self.model.jobs[one].priority >= job.priority)
                assert next(ahead, job_id) == job_id, "it is next, but others go first"

    async def what_would_be_claimed(self) -> list[uuid.UUID]:
        """In the order in which it is taken."""
        transaction = self.on.transaction()
        await transaction.start()
        taken: list[uuid.UUID] = []
        for info in self.infos:
            taken += [claimed.id for claimed in await take(self.on, info)]
        await transaction.rollback()
        return taken

    # After every step

    @invariant()
    def the_engine_is_as_the_model_says(self) -> None:
        rows = {row["id"]: row for row in self.run(self.on.fetch("SELECT * FROM jobs"))}
        assert rows.keys() == self.model.jobs.keys(), "a job was lost, or came from nowhere"
        for job_id, job in self.model.jobs.items():
            row = rows[job_id]
            found = {name: row[name] for name in ("state", "attempts", "crashes", "isolate", "unique_key")}
            assert found == {
                "state": job.state,
                "attempts": job.attempts,
                "crashes": job.crashes,
                "isolate": job.isolate,
                "unique_key": job.key,
            }
            assert (row["lease_token"], row["lease_owner"]) == (job.token, job.owner)
            assert (row["parent_id"], row["children"], row["pending_children"]) == (
                job.parent,
                job.children,
                job.pending,
            )
            assert not job.active or row["awaited"] is job.awaited
            assert (row["sequence_key"], row["parked_for"] is not None) == (job.sequence, job.parked_for is not None)
            assert (row["cancel_requested_at"] is not None) is job.stop
            assert (row["finished_at"] is None) is job.active
            assert (row["state"] == "running") is (row["lease_owner"] is not None)
            assert row["attempts"] <= row["max_attempts"]
            assert row["crashes"] <= row["max_crashes"]
            if (before := self.rows.get(job_id)) is not None:
                assert row["lease_token"] >= before["lease_token"]
                if job_id not in self.model.touched:
                    assert row == before, "changed by a step that had no right to"
        self.rows = rows
        self.model.touched.clear()
        self.model.steps += 1

    @invariant()
    def history_and_artefacts_are_as_the_model_says(self) -> None:
        events: dict[Any, list[tuple[str, int | None]]] = {job_id: [] for job_id in self.model.jobs}
        for row in self.run(self.on.fetch("SELECT job_id, event, lease_token FROM job_events ORDER BY id")):
            events[row["job_id"]].append((row["event"], row["lease_token"]))
        for job_id, job in self.model.jobs.items():
            assert events[job_id] == job.events
            ended = [token for _, token in events[job_id] if token is not None]
            assert ended == list(range(1, job.token + (job.state != "running"))), "each run has exactly one end"
        found = {
            (row["job_id"], row["name"]): row["lease_token"]
            for row in self.run(self.on.fetch("SELECT job_id, name, lease_token FROM job_artefacts"))
        }
        assert found == {
            (job.id, name): token for job in self.model.jobs.values() for name, token in job.artefacts.items()
        }

    @invariant()
    def sequences_hold(self) -> None:
        """Said anew, without the model's own steps: nobody is parked who has room, nobody holds a place too many."""
        sequences: dict[tuple[str, str, str], list[ModelJob]] = {}
        for job in self.model.jobs.values():
            if job.active and job.sequence is not None:
                sequences.setdefault((job.tenant, job.kind, job.sequence), []).append(job)
        for jobs in sequences.values():
            parked = [job for job in jobs if job.parked_for is not None]
            assert len(jobs) - len(parked) <= jobs[0].at_once
            assert not parked or len(jobs) - len(parked) == jobs[0].at_once
            # A failover or a step of the clock changes no order: who holds a place came before all who are parked.
            assert not parked or max(job.position for job in jobs if job.parked_for is None) < min(
                job.position for job in parked
            )
        assert not self.run(self.on.fetchval("SELECT count(*) FROM missed_turns")), "nobody was in the way"

    @invariant()
    def unique_keys_hold(self) -> None:
        taken = [
            (job.tenant, job.kind, job.key, job.scope == "active")
            for job in self.model.jobs.values()
            if job.key is not None and (job.scope != "active" or job.active)
        ]
        assert len(taken) == len(set(taken))


@pytest.fixture
def ground(server_url: str, template: str) -> Iterator[Ground]:
    name = f"waybill_machine_{os.getpid()}"
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    loop = asyncio.new_event_loop()

    async def prepare() -> Connection:
        server = await asyncpg.connect(server_url)
        await server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        await server.execute(f"ALTER DATABASE {name} SET search_path = test_clock, pg_catalog, public")
        await server.close()
        connection = await asyncpg.connect(url, server_settings=ONE_PLAN)
        # Committing to disk proves nothing here and takes most of the time.
        await connection.execute("SET synchronous_commit = off")
        return connection

    async def clear_away(connection: Connection) -> None:
        await connection.close()
        server = await asyncpg.connect(server_url)
        await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await server.close()

    connection = loop.run_until_complete(prepare())
    yield Ground(loop, connection)
    loop.run_until_complete(clear_away(connection))
    loop.close()


def play(ground: Ground, *, examples: int, steps: int) -> None:
    """Play, and see to it that the games were worth playing: a machine that never claims proves nothing."""
    happened: Counter[str] = Counter()

    class Machine(EngineMachine):
        def __init__(self) -> None:
            super().__init__(ground)

        def teardown(self) -> None:
            happened.update(self.model.happened)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            print_blob=True,
            derandomize=examples < 1000,  # new cases are looked for in `make test-heavy`
            suppress_health_check=list(HealthCheck),
            # Shrinking talks to Postgres for minutes; the steps are printed as they were.
            phases=[Phase.generate],
        ),
    )
    rare = {
        what
        for what in (
            *ENDS_OF_RUNS,
            "retried",
            "fired",
            "stale beside a new owner",
            "stale beside a new owner with the same token",
            "deleted while a parent waited",
            "let in later",
        )
        if happened[what] < max(3, examples // 40)
    }
    reasons = (
        *("waiting", "running", "ended", "scheduled", "children", "sequence"),
        *("queue_paused", "no_worker", "cap", "isolated"),
    )
    seldom = (
        "retried and waits",
        "retried and awaited",
        "kept waiting by a cap",
        "refused below a sequence",
        *(f"explained: {one}" for one in reasons),
    )
    if examples >= 1000:  # fewer games may miss what is rare
        rare |= {what for what in seldom if not happened[what]}
    assert not rare, f"hardly ever tried: {rare} of {happened}"


@pytest.mark.timeout(600)
def test_the_engine_behaves_like_its_model(ground: Ground) -> None:
    play(ground, examples=80, steps=50)


@pytest.mark.heavy
@pytest.mark.timeout(1200)
def test_the_engine_behaves_like_its_model_for_long(ground: Ground) -> None:
    play(ground, examples=1200, steps=80)
