"""A model of the engine in memory, after its documents. Without SQL and concurrency it is small enough to be trusted.

Each method does what must happen and returns what the engine must return. Times are seconds on the model's own clock.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field

ACTIVE_STATES = ("scheduled", "queued", "running")
RETRYABLE_STATES = ("failed", "dead_letter", "cancelled")


@dataclass
class ModelJob:
    id: uuid.UUID
    tenant: str
    kind: str
    queue: str
    priority: int
    max_attempts: int
    max_crashes: int
    run_at: float
    created: int
    """The step that created it: jobs of one step have the same `created_at`."""
    state: str = "queued"
    attempts: int = 0
    crashes: int = 0
    token: int = 0
    owner: uuid.UUID | None = None
    isolate: bool = False
    stop: bool = False
    key: str | None = None
    scope: str | None = None
    until: float | None = None
    finished_at: float | None = None
    events: list[tuple[str, int | None]] = field(default_factory=list)
    artefacts: dict[str, int] = field(default_factory=dict)
    parent: uuid.UUID | None = None
    awaited: bool = False
    children: int = 0
    pending: int = 0
    sequence: str | None = None
    at_once: int = 1
    position: int = 0
    parked_for: float | None = None

    @property
    def lane(self) -> tuple[str, str, int, str]:
        return self.queue, self.kind, self.priority, self.tenant

    @property
    def active(self) -> bool:
        return self.state in ACTIVE_STATES


@dataclass
class ModelWorker:
    id: uuid.UUID
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    expires: float
    state: str = "active"


class Model:
    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self.jobs: dict[uuid.UUID, ModelJob] = {}
        self.workers: dict[uuid.UUID, ModelWorker] = {}
        self.paused: set[str] = set()
        self.caps: dict[tuple[str | None, str | None], int] = {}
        self.touched: set[uuid.UUID] = set()
        """Jobs that the last step was allowed to change."""
        self.positions = 0
        """How many places in sequences were given out."""
        self.happened: Counter[str] = Counter()
        """How often each event happened, because a test in which nothing happens proves nothing."""

    # Enqueuing

    def enqueue(self, job: ModelJob, window: float | None) -> tuple[uuid.UUID, bool]:
        if job.key is not None:
            if job.scope != "active":
                self._free_passed_windows(job)
            if (holder := self._holder(job)) is not None:
                return holder.id, False
            job.until = self.now + window if window is not None else None
        job.state = "scheduled" if job.run_at > self.now else "queued"
        self.jobs[job.id] = job
        self.touched.add(job.id)
        self._park(job, job.run_at)
        return job.id, True

    # Sequences

    def _park(self, job: ModelJob, until: float) -> None:
        """Put a job of a sequence at its end, and let it in at once if there is room."""
        if job.sequence is not None:
            self.positions += 1
            job.position, job.parked_for = self.positions, until
            job.state, job.run_at = "scheduled", float("inf")
            self._advance(job)

    def running_suspects(self) -> list[uuid.UUID]:
        return sorted(job.id for job in self.jobs.values() if job.isolate and job.state == "running")

    def ahead_of_parked(self) -> list[uuid.UUID]:
        """The jobs that hold a place in a sequence in which others are parked."""
        active = [job for job in self.jobs.values() if job.active and job.sequence is not None]
        full = {(job.tenant, job.kind, job.sequence) for job in active if job.parked_for is not None}
        holding = [job for job in active if job.parked_for is None]
        return sorted(job.id for job in holding if (job.tenant, job.kind, job.sequence) in full)

    def _advance(self, changed: ModelJob) -> None:
        """Let in the first parked jobs of the sequence, in order, while each has room."""
        if changed.sequence is None:
            return
        mine = (changed.tenant, changed.kind, changed.sequence)
        active = [one for one in self.jobs.values() if one.active and (one.tenant, one.kind, one.sequence) == mine]
        holding = sum(one.parked_for is None for one in active)
        waiting = sorted((one for one in active if one.parked_for is not None), key=lambda one: one.position)
        for job in waiting:
            if holding >= job.at_once:
                break
            assert job.parked_for is not None
            holding += 1
            self.happened["let in later"] += job is not changed
            if not job.pending:
                job.run_at = max(job.parked_for, self.now)
                job.state = "scheduled" if job.parked_for > self.now else "queued"
            job.parked_for = None
            self.touched.add(job.id)

    def below_a_sequence(self, parent_id: uuid.UUID | None, children: list[ModelJob]) -> bool:
        """Whether a job above these is in a sequence, and one of them too."""
        if not any(one.sequence for one in children):
            return False
        while parent_id is not None and (parent := self.jobs.get(parent_id)) is not None:
            if parent.sequence is not None:
                return True
            parent_id = parent.parent
        return False

    def _same_key(self, job: ModelJob) -> list[ModelJob]:
        mine = (job.tenant, job.kind, job.key)
        return [one for one in self.jobs.values() if (one.tenant, one.kind, one.key) == mine and one is not job]

    def _free_passed_windows(self, job: ModelJob) -> None:
        for one in self._same_key(job):
            if one.scope == "window" and one.until is not None and one.until <= self.now:
                one.key = one.scope = one.until = None
                self.touched.add(one.id)

    def _holder(self, job: ModelJob) -> ModelJob | None:
        """The job that has the key: among active jobs for the scope `active`, otherwise among all jobs."""
        for one in self._same_key(job):
            if job.scope == "active" and one.scope == "active" and one.active:
                return one
            if job.scope != "active" and one.scope in ("window", "forever"):
                return one
        return None

    # Claiming

    def may_claim(self, worker: ModelWorker) -> bool:
        return worker.state == "active" and worker.expires > self.now

    def claim(self, worker: ModelWorker, taken: list[tuple[uuid.UUID, int]], limit: int, *, isolated: bool) -> None:
        """Check what a worker claimed, and claim it here too.

        The fair share decides which tenant comes first. The model checks that the priority is the highest, that the job
        is the oldest of its lane, that no cap is exceeded, and that nothing claimable was left.
        """
        waiting = self.claimable(worker, isolated=isolated) if self.may_claim(worker) else []
        for job_id, token in taken:
            job = self.jobs[job_id]
            assert job in waiting, "it took what it may not have"
            assert self.full_cap(job) is None, "it exceeded a cap"
            assert job.priority == max(one.priority for one in waiting if self.full_cap(one) is None)
            assert (job.created, job_id) == min((one.created, one.id) for one in waiting if one.lane == job.lane)
            waiting.remove(job)
            job.state, job.owner, job.token = "running", worker.id, job.token + 1
            assert job.token == token
            self.touched.add(job.id)
        left = [job.id for job in waiting if self.full_cap(job) is None]
        assert len(taken) == limit or not left, "it left what it could have taken"
        assert len(taken) <= limit
        self.happened["kept waiting by a cap"] += len(waiting) > len(left)

    def full_cap(self, job: ModelJob) -> tuple[str | None, str | None] | None:
        """The tenant and kind of a full cap that applies to this job."""
        for (tenant, kind), most in self.caps.items():
            if tenant in (None, job.tenant) and kind in (None, job.kind):
                running = sum(
                    one.owner is not None and tenant in (None, one.tenant) and kind in (None, one.kind)
                    for one in self.jobs.values()
                )
                if running >= most:
                    return tenant, kind
        return None

    def reason(self, job: ModelJob) -> str:
        """Why the job is not running, as `explain` should say."""
        if not job.active:
            return "ended"
        if job.state == "running":
            return "stopping" if job.stop else "running"
        if job.pending:
            return "children"
        if job.parked_for is not None:
            return "sequence"
        if job.state == "scheduled" and job.run_at > self.now:
            return "scheduled"
        if job.queue in self.paused:
            return "queue_paused"
        if not self.serving(job):
            return "no_worker"
        if job.state == "queued" and self.full_cap(job):
            return "cap"
        if job.isolate:
            return "isolated"
        return "waiting"

    def serving(self, job: ModelJob) -> list[ModelWorker]:
        """The workers that would run the job."""
        able = [one for one in self.workers.values() if self.may_claim(one)]
        return [one for one in able if job.kind in one.kinds and job.queue in one.queues]

    def claimable(self, worker: ModelWorker, *, isolated: bool = False) -> list[ModelJob]:
        return [
            job
            for job in self.jobs.values()
            if job.state == "queued"
            and job.isolate is isolated
            and job.queue in worker.queues
            and job.queue not in self.paused
            and job.kind in worker.kinds
        ]

    def promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state == "scheduled" and job.run_at <= self.now]
        for job in due:
            job.state = "queued"
            self.touched.add(job.id)
        return len(due)

    def running(self, worker: ModelWorker) -> dict[uuid.UUID, int]:
        return {job.id: job.token for job in self.jobs.values() if job.owner == worker.id}

    def renew(self, worker: ModelWorker, ttl: float) -> bool:
        if worker.state == "gone":
            return False
        worker.expires = self.now + ttl
        return True

    def fenced(self, job_id: uuid.UUID, token: int, worker_id: uuid.UUID) -> ModelJob | None:
        """The job, if this worker still runs it under this token."""
        job = self.jobs.get(job_id)
        if job is None or job.state != "running" or (job.token, job.owner) != (token, worker_id):
            if job is not None and job.state == "running":
                self.happened["stale beside a new owner"] += 1
                self.happened["stale beside a new owner with the same token"] += job.token == token
            return None
        self.touched.add(job_id)
        return job

    # Ends of runs

    def _end(self, job: ModelJob, state: str, event: str) -> None:
        self.happened[event] += 1
        job.events.append((event, job.token))
        job.state, job.owner = state, None
        job.finished_at = None if job.active else self.now
        self.touched.add(job.id)
        if not job.active:
            self._child_ended(job)
            self._advance(job)

    def succeed(self, job_id: uuid.UUID, token: int, worker_id: uuid.UUID) -> bool:
        if (job := self.fenced(job_id, token, worker_id)) is None:
            return False
        job.isolate = False
        self._end(job, "succeeded", "succeeded")
        return True

    def fail(self, job_id: uuid.UUID, token: int, worker_id: uuid.UUID, how: str, delay: float) -> str | None:
        """End a run; `how` is retryable, permanent, uncharged, released, snoozed or cancelled."""
        if (job := self.fenced(job_id, token, worker_id)) is None:
            return None
        if how in ("retryable", "permanent"):
            job.attempts += 1
        if how not in ("released", "snoozed"):
            job.isolate = False
        state, event = {
            "permanent": ("failed", "failed"),
            "uncharged": ("scheduled", "postponed"),
            "released": ("queued", "released"),
            "snoozed": ("scheduled", "snoozed"),
            "cancelled": ("cancelled", "cancelled"),
            "retryable": ("scheduled", "retry_scheduled"),
        }[how]
        if how == "retryable" and job.attempts >= job.max_attempts:
            state, event = "dead_letter", "dead_lettered"
        if state in ACTIVE_STATES and job.stop:
            state, event = "cancelled", "cancelled"
        job.run_at = self.now + (delay if state == "scheduled" else 0)
        self._end(job, state, event)
        return state

    def rescue(self, worker: ModelWorker) -> set[uuid.UUID]:
        held = [self.jobs[job_id] for job_id in self.running(worker)]
        for job in held:
            if worker.state == "draining" and not job.stop:  # the worker had been told to stop: a deploy, not a crash
                self._end(job, "queued", "released")
                continue
            job.isolate = True
            if job.stop:
                self._end(job, "cancelled", "cancelled")
            elif len(held) > 1:
                self._end(job, "queued", "suspected")
            else:
                job.crashes += 1
                job.attempts += 1
                if job.crashes >= job.max_crashes or job.attempts >= job.max_attempts:
                    self._end(job, "dead_letter", "dead_lettered")
                else:
                    self._end(job, "queued", "crashed")
        worker.state = "gone"
        return {job.id for job in held}

    def expired_workers(self) -> list[ModelWorker]:
        return [one for one in self.workers.values() if one.state != "gone" and one.expires < self.now]

    # Cancelling and retrying

    def cancel(self, job_id: uuid.UUID) -> str | None:
        """Cancel a job and return its new state; None for a conflict."""
        job = self.jobs[job_id]
        if not job.active:
            return None
        below = self._below(job)
        for one in below:
            one.awaited = one.awaited and not one.active
            self._cancel_one(one)
        self._cancel_one(job)
        for one in (*below, job):
            self._advance(one)
        return job.state

    def _cancel_one(self, job: ModelJob) -> None:
        if not job.active:
            return
        self.touched.add(job.id)
        if job.state == "running":
            if not job.stop:  # a second request changes nothing
                job.events.append(("cancel_requested", None))
        else:
            job.run_at = self.now if job.run_at == float("inf") else job.run_at
            job.state, job.finished_at, job.pending, job.parked_for = "cancelled", self.now, 0, None
            job.events.append(("cancelled", None))
            self._child_ended(job)
        job.stop = True

    def retry(self, job_id: uuid.UUID) -> bool:
        job = self.jobs[job_id]
        if job.state not in RETRYABLE_STATES:
            return False
        if job.scope == "active" and self._holder(job) is not None:
            return False
        active = [child for child in self.jobs.values() if child.parent == job_id and child.active]
        for child in active:
            child.awaited = True
            self.touched.add(child.id)
        job.pending = len(active)
        job.state, job.run_at = ("scheduled", float("inf")) if active else ("queued", self.now)
        job.attempts, job.crashes, job.stop, job.finished_at = 0, 0, False, None
        parent = self.jobs.get(job.parent) if job.parent else None
        job.awaited = parent is not None and parent.pending > 0
        if parent is not None and job.awaited:
            parent.pending += 1
            self.touched.add(parent.id)
        self._park(job, self.now)
        self.happened["retried"] += 1
        self.happened["retried and waits"] += bool(active)
        self.happened["retried and awaited"] += job.awaited
        job.events.append(("retried", None))
        self.touched.add(job_id)
        return True

    # Families

    def enqueue_family(
        self, parent: ModelJob, children: list[tuple[ModelJob, float | None]], within: uuid.UUID | None
    ) -> list[tuple[uuid.UUID, bool]] | None:
        """Return the result for each child; None for a conflict. The parent has no unique key."""
        if within is not None and not self.jobs[within].pending:
            return None
        self.enqueue(parent, None)
        answers = self._add_children(parent, children)
        if parent.pending:
            parent.state, parent.run_at = "scheduled", float("inf")
        if within is not None:
            self._joins(parent, self.jobs[within])
        return answers

    def add_children(
        self, parent_id: uuid.UUID, children: list[tuple[ModelJob, float | None]]
    ) -> list[tuple[uuid.UUID, bool]] | None:
        parent = self.jobs[parent_id]
        return self._add_children(parent, children) if parent.pending else None

    def _add_children(
        self, parent: ModelJob, children: list[tuple[ModelJob, float | None]]
    ) -> list[tuple[uuid.UUID, bool]]:
        answers = []
        for child, window in children:
            answers.append(self.enqueue(child, window))
            if answers[-1][1]:
                self._joins(child, parent)
        return answers

    def _joins(self, child: ModelJob, parent: ModelJob) -> None:
        child.parent, child.awaited = parent.id, True
        parent.children += 1
        parent.pending += 1
        self.touched.add(parent.id)

    def _child_ended(self, child: ModelJob) -> None:
        if not child.awaited:
            return
        assert child.parent is not None
        if (parent := self.jobs.get(child.parent)) is None:
            return  # it was deleted
        assert parent.pending > 0, "only a parent that waits has children that it awaits"
        parent.pending -= 1
        if parent.pending == 0:
            if parent.parked_for is None:
                parent.state, parent.run_at = "queued", self.now
            self.happened["fired"] += 1
        self.touched.add(parent.id)

    def ended_children_of_waiting_parents(self) -> list[uuid.UUID]:
        waiting = {job.id for job in self.jobs.values() if job.pending}
        return sorted(job.id for job in self.jobs.values() if job.parent in waiting and job.state in RETRYABLE_STATES)

    def _below(self, job: ModelJob) -> list[ModelJob]:
        children = [child for child in self.jobs.values() if child.parent == job.id]
        return [*children, *(below for child in children for below in self._below(child))]

    def forget_claim(self, job_id: uuid.UUID) -> None:
        """A failover to a server that had not heard of the claim yet."""
        job = self.jobs[job_id]
        job.state, job.owner, job.token = "queued", None, job.token - 1
        self.touched.add(job_id)

    def delete(self, job_id: uuid.UUID) -> None:
        job = self.jobs.pop(job_id)
        if job.active:
            self.happened["deleted while a parent waited"] += job.awaited and job.parent in self.jobs
            self._child_ended(job)
            self._advance(job)

    def purge(self, older_than: float) -> int:
        old = [
            job.id
            for job in self.jobs.values()
            if not job.active and job.finished_at is not None and job.finished_at < self.now - older_than
        ]
        for job_id in old:
            del self.jobs[job_id]
        return len(old)
