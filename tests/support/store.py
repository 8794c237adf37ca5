"""Lanes of jobs in memory, in place of Postgres, for the tests of `FairShare`."""

from __future__ import annotations

import itertools
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from waybill_engine import ClaimedJob
from waybill_engine.fair_share import FairShare
from waybill_engine.gates import Gate
from waybill_engine.lanes import Lane
from waybill_engine.rules import Cap, Rules
from waybill_engine.shares import GatedPlan, Portion

_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def lane(tenant: str, kind: str = "work", priority: int = 0, queue: str = "default", owner: str | None = None) -> Lane:
    """A lane of the tenant's own jobs, or of an owner below it."""
    return Lane(queue, kind, priority, tenant, owner or tenant)


def job(where: Lane, number: int, cost: int = 1) -> ClaimedJob:
    """A job as a claim returns it. Lower numbers are older."""
    return ClaimedJob(
        id=uuid.UUID(int=number),
        token=1,
        tenant=where.tenant,
        owner=where.owner,
        kind=where.kind,
        queue=where.queue,
        priority=where.priority,
        cost=cost,
        attempts=0,
        max_attempts=1,
        time_limit=60.0,
        traceparent=None,
        tracestate=None,
        created=_LONG_AGO.timestamp(),
        waited=0.0,
        waited_in_all=0.0,
        isolated=False,
        last_error=None,
        outages=0,
        payload_text="{}",
        worker_id=uuid.UUID(int=0),
    )


def concerns(cap: Cap, lane: Lane) -> bool:
    return cap.tenant in (None, lane.tenant) and cap.kind in (None, lane.kind)


def within(plan: GatedPlan, rooms: Mapping[Gate, int]) -> list[Portion]:
    """What the gates let through of a plan, turn after turn."""
    left = dict(rooms)
    quotas = [0] * len(plan.lanes)
    for lane in plan.turns:
        gates = plan.lanes[lane].known.gates
        if sum(quotas) < plan.limit and all(left.get(gate, 0) > 0 for gate in gates):
            quotas[lane] += 1
            for gate in gates:
                left[gate] -= 1
    return plan.portions(quotas)


class Store:
    def __init__(self, fair_share: FairShare) -> None:
        self.fair_share = fair_share
        self.waiting: dict[Lane, list[ClaimedJob]] = {}
        self.running: list[ClaimedJob] = []
        self.work: Counter[str] = Counter()
        """The cost of the work that each tenant got so far."""
        self.now = 0.0
        self.caps: Sequence[Cap] = ()
        self._numbers = itertools.count(1)

    def add(self, where: Lane, costs: Iterable[int], *, tell: bool = True) -> None:
        new = [job(where, next(self._numbers), cost) for cost in costs]
        self.waiting.setdefault(where, []).extend(new)
        if tell and new:
            self.fair_share.announce(where, new[0].position)

    def look(self) -> None:
        self.fair_share.found(
            {where: jobs[0].position for where, jobs in self.waiting.items() if jobs}, self.fair_share.announcements
        )

    def cap(self, *caps: Cap) -> None:
        self.caps = caps
        self.fair_share.apply(Rules(caps=caps))

    def room(self, gate: Gate) -> int:
        assert isinstance(gate, Cap)
        return gate.most - sum(concerns(gate, lane(one.tenant, one.kind)) for one in self.running)

    def claim(self, limit: int) -> list[ClaimedJob]:
        """The steps of `waybill_engine.claim.claim`, one after the other."""
        portions = self.fair_share.plan(limit, self.now)
        if self.fair_share.gates_of(portions):
            portions = self._within_gates(limit)
            if not portions:
                for gate in self.fair_share.gates_in_question(self.now):
                    if self.room(gate) <= 0:
                        self.fair_share.gates.close(gate, self.now)
                portions = self._within_gates(limit)
        claimed_jobs = self.take(portions)
        self.fair_share.served(portions, claimed_jobs)
        return claimed_jobs

    def _within_gates(self, limit: int) -> list[Portion]:
        plan = self.fair_share.plan_for_gates(limit, self.now)
        rooms = {gate: self.room(gate) for gate in self.fair_share.gates_of(plan.lanes)}
        for gate, room in rooms.items():
            if room <= 0:
                self.fair_share.gates.close(gate, self.now)
        return within(plan, rooms)

    def take(self, portions: Iterable[Portion]) -> list[ClaimedJob]:
        taken: list[ClaimedJob] = []
        for portion in portions:
            there = self.waiting.get(portion.lane, [])
            begin = bisect_left(there, portion.start, key=lambda one: one.position)
            taken += there[begin : begin + portion.quota]
            del there[begin : begin + portion.quota]
        self.running += taken
        for one in taken:
            self.work[one.tenant] += one.cost
        return taken

    def finish(self, claimed_jobs: Iterable[ClaimedJob]) -> None:
        ended = list(claimed_jobs)
        for one in ended:
            self.running.remove(one)
        self.fair_share.gates.reopen_caps(ended)
