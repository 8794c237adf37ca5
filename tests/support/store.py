"""Lanes of jobs in memory: what Postgres is to a worker's `Shares`, one process, no time lost."""

from __future__ import annotations

import itertools
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from waybill_engine import Lease
from waybill_engine.fair_share import Gate, Portion, Shares
from waybill_engine.lanes import Cap, Lane, Rules

_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def lane(tenant: str, kind: str = "work", priority: int = 0, queue: str = "default") -> Lane:
    return Lane(queue, kind, priority, tenant)


def job(where: Lane, number: int, cost: int = 1) -> Lease:
    """A job as a claim answers it; a lower number is older."""
    return Lease(
        id=uuid.UUID(int=number),
        token=1,
        tenant=where.tenant,
        owner=where.tenant,
        kind=where.kind,
        queue=where.queue,
        priority=where.priority,
        cost=cost,
        attempts=0,
        max_attempts=1,
        time_limit=60.0,
        traceparent=None,
        created_at=_LONG_AGO,
        isolated=False,
        last_error=None,
        payload={},
    )


def concerns(cap: Cap, lane: Lane) -> bool:
    return cap.tenant in (None, lane.tenant) and cap.kind in (None, lane.kind)


class Store:
    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.waiting: dict[Lane, list[Lease]] = {}
        self.running: list[Lease] = []
        self.work: Counter[str] = Counter()
        """What each tenant was given so far, by cost."""
        self.now = 0.0
        self.caps: Sequence[Cap] = ()
        self._numbers = itertools.count(1)

    def add(self, where: Lane, costs: Iterable[int], *, tell: bool = True) -> None:
        new = [job(where, next(self._numbers), cost) for cost in costs]
        self.waiting.setdefault(where, []).extend(new)
        if tell and new:
            self.shares.announce(where, new[0].id)

    def look(self) -> None:
        self.shares.seen({where: jobs[0].id for where, jobs in self.waiting.items() if jobs}, self.shares.news)

    def cap(self, *caps: Cap) -> None:
        self.caps = caps
        self.shares.rule(Rules(caps=caps))

    def room(self, gate: Gate) -> int:
        assert isinstance(gate, Cap)
        return gate.most - sum(concerns(gate, lane(one.tenant, one.kind)) for one in self.running)

    def claim(self, limit: int) -> list[Lease]:
        """The steps of `waybill_engine.claim.claim`, one after the other."""
        portions = self.shares.plan(limit, self.now)
        if self.shares.gates(portions):
            for gate in self.shares.gates_in_question(self.now):
                if self.room(gate) <= 0:
                    self.shares.close(gate, self.now)
            portions = self.shares.plan(limit, self.now)
        if gates := self.shares.gates(portions):
            rooms = {gate: self.room(gate) for gate in gates}
            for gate, room in rooms.items():
                if room <= 0:
                    self.shares.close(gate, self.now)
            portions = self.shares.plan(limit, self.now, rooms)
        leases = self.take(portions)
        self.shares.served(portions, leases)
        return leases

    def take(self, portions: Iterable[Portion]) -> list[Lease]:
        taken: list[Lease] = []
        for portion in portions:
            there = self.waiting.get(portion.lane, [])
            begin = bisect_left(there, portion.start, key=lambda one: one.id)
            taken += there[begin : begin + portion.quota]
            del there[begin : begin + portion.quota]
        self.running += taken
        for one in taken:
            self.work[one.tenant] += one.cost
        return taken

    def finish(self, leases: Iterable[Lease]) -> None:
        for one in list(leases):
            self.running.remove(one)
        self.shares.reopen()
