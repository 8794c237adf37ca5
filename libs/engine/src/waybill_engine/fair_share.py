"""Fair share: whose jobs a worker claims next. Tenants share by the work they were given, weighted.

Every worker process shares fairly by itself, and so the fleet does: there is no shared counter to lock, to lose or to
repair. Each tenant has a virtual time, the work it was given divided by its weight; the tenant with the least is next.
A tenant that comes late starts at the present virtual time: it neither waits for what others had before it nor catches
up on it. Among those that have had as much as it, it comes first: that costs them at most one job of it, and among
thousands it does not wait for a whole round. The owners, kinds and queues of one tenant take turns inside its share.

Each priority is shared separately, and lower ones are served when those above are empty or behind closed `gates`. With
`ageing`, a priority that got nothing for so many seconds counts one higher, and one more for each such period, until it
gets a claim: low priority is late and never starved.

Pure: it asks no database and has no clock of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from waybill_engine.gates import Gate, Gates
from waybill_engine.lanes import Lane, Position
from waybill_engine.rules import Cap, Rate, Rules
from waybill_engine.shares import REMEMBERED, GatedPlan, KnownLane, Level, Portion, Share, by_portion, in_turn

if TYPE_CHECKING:
    from waybill_engine.claim import ClaimedJob

_LEVELS = 64
"""Priorities that are remembered without having work."""

_FIRST = -1.0
"""Before every tie that is drawn."""

_MOST_BEHIND_GATES = 100
"""The most jobs that a claim behind gates takes, and the most turns that it plans for when gates refuse some. It asks
for each job by itself, also for those that are not there, and the next claim goes on where it ended."""


class FairShare:
    def __init__(
        self,
        dependencies: Mapping[str, Sequence[str]] | None = None,
        rng: random.Random | None = None,
        *,
        ageing: float = 0.0,
    ) -> None:
        """Without `ageing` (0), a priority waits for as long as those above have jobs."""
        self._ageing = ageing
        self.gates = Gates(dependencies or {})
        self._rng = rng or random.Random()  # noqa: S311 - breaks ties, guards nothing
        self._rules = Rules()
        self._levels: dict[int, Level] = {}
        self._announcements = 0
        self._first_look = True
        self._checked: set[tuple[str, str]] = set()
        """Tenants and kinds whose caps and rates this worker has asked for since the last look."""

    def __len__(self) -> int:
        return sum(len(level.lanes) for level in self._levels.values())

    # Which lanes there are

    @property
    def announcements(self) -> int:
        """How many announcements there were so far. `found` needs the count from before the look."""
        return self._announcements

    def announce(self, lane: Lane, first: Position) -> None:
        """A lane has jobs, none of which comes before `first` unless we know of it already."""
        self._announcements += 1
        known = self._level(lane).lanes.get(lane)
        if known is None:
            self._add(lane, first, newcomer=True)
            return
        known.announced = self._announcements
        known.starts_at(min(known.start, first))

    def found(self, heads: Mapping[Lane, Position], announcements: int, *, complete: bool = True) -> None:
        """A look found these lanes and, if it was complete, no others.

        A lane that was announced after the look began (`announcements` counts those before) may be missing in it, and
        stays.
        """
        self._checked = {(lane.tenant, lane.kind) for lane in heads}  # a look finds their caps and rates, too
        for lane, head in heads.items():
            known = self._level(lane).lanes.get(lane)
            if known is None:
                self._add(lane, head)
            else:
                known.starts_at(head if known.announced <= announcements else min(known.start, head))
        if complete:
            for level in self._levels.values():
                gone = [one for one in level.lanes.values() if one.lane not in heads and one.announced <= announcements]
                for known in gone:
                    self._remove(known)
            if len(self._levels) > _LEVELS:
                self._levels = {priority: level for priority, level in self._levels.items() if level.lanes}
        self._first_look = False

    def _level(self, lane: Lane) -> Level:
        level = self._levels.get(lane.priority)
        if level is None:
            level = self._levels[lane.priority] = Level()
        return level

    def _add(self, lane: Lane, start: Position, *, newcomer: bool = False) -> None:
        level = self._level(lane)
        share = level.shares.pop(lane.tenant, None)
        if share is None:
            weight = self._rules.weights.get(lane.tenant, 1.0)
            # Processes that start together must not all serve the same tenant first.
            phase = self._rng.random() / weight if self._first_look else 0.0
            share = Share(level.virtual + phase, weight, level.cost, self._rng.random())
        level.shares[lane.tenant] = share  # at the end, so that the longest idle are forgotten first
        if not share.lanes:
            share.virtual = max(share.virtual, level.virtual)
            if newcomer:
                share.tie = _FIRST
        known = KnownLane(lane, share, start, self.gates.of(lane), self._announcements)
        level.lanes[lane] = share.lanes[lane] = known
        if len(level.shares) > REMEMBERED + len(level.lanes):
            level.forget_the_idle()

    def _remove(self, known: KnownLane) -> None:
        level = self._level(known.lane)
        if level.lanes.get(known.lane) is known:
            del level.lanes[known.lane]
            del known.share.lanes[known.lane]

    # The rules

    def apply(self, rules: Rules) -> None:
        """Go by these rules from now on."""
        if rules == self._rules:
            return
        self._rules = rules
        self.gates.apply(rules)
        for level in self._levels.values():
            for tenant, share in level.shares.items():
                share.weight = rules.weights.get(tenant, 1.0)
            for known in level.lanes.values():
                known.gates = self.gates.of(known.lane)

    def in_doubt(self, portions: Iterable[Portion]) -> list[Lane]:
        """The lanes that may be behind a cap or a rate that this worker has not heard of."""
        if not self._rules.more:
            return []
        return [one.lane for one in portions if (one.lane.tenant, one.lane.kind) not in self._checked]

    def learn(self, lanes: Iterable[Lane], caps: Iterable[Cap], rates: Iterable[Rate]) -> None:
        """These limit the lanes. A lane behind one that was unknown has jobs although a claim found none."""
        self._checked.update((lane.tenant, lane.kind) for lane in lanes)
        self.gates.learn(caps, rates)
        for level in self._levels.values():
            for known in level.lanes.values():
                if (gates := self.gates.of(known.lane)) != known.gates:
                    known.gates = gates
                    known.changes += 1

    def next_opening(self, now: float) -> float | None:
        """When to try again, on the caller's clock; None when no lane is behind a closed gate."""
        lanes = (known.gates for level in self._levels.values() for known in level.lanes.values())
        return self.gates.next_opening(lanes, now)

    # Sharing out

    def any_open(self, now: float) -> bool:
        """Whether there is a lane to claim from."""
        return any(
            self.gates.all_open(known.gates, now) for level in self._levels.values() for known in level.lanes.values()
        )

    def plan(self, limit: int, now: float, *, spare: int = 0) -> list[Portion]:
        """Which lanes of the highest priority to claim from, and how many jobs of each, `limit` in all.

        After these come up to `spare` lanes whose turn is next, if they are behind no gate. Where many workers know
        the same lanes, most are empty when a worker comes to them, and a claim can go on to the next.
        """
        level, ready = self._top(now)
        if level is None or limit <= 0:
            return []
        level.advance(ready)
        if len(ready) == 1:
            return [Portion(ready[0], limit, ready[0].changes)]
        turns = in_turn(ready)
        quotas = Counter(islice(turns, limit))
        if len(ready) > len(quotas):
            for one in islice(turns, spare):
                if one not in quotas and not one.gates:
                    quotas[one] = 1
        return [Portion(one, quota, one.changes) for one, quota in quotas.items()]

    def plan_for_gates(self, limit: int, now: float) -> GatedPlan:
        """The same for a claim that has to ask gates: whose turn it is, for as long as gates may refuse some.

        The turns after the first `limit` are only of lanes that are behind no other gates than those. So a claim asks
        no more gates than it has to, and goes on to what is behind none if all of them are closed.
        """
        level, ready = self._top(now)
        if level is None or limit <= 0:
            return GatedPlan((), (), 0)
        level.advance(ready)
        limit = min(limit, _MOST_BEHIND_GATES)
        first = list(islice(in_turn(ready), limit))
        gates = {gate for one in first for gate in one.gates}
        open_to_us = [one for one in ready if gates.issuperset(one.gates)]
        turns = first if len(open_to_us) == 1 else islice(in_turn(open_to_us), 2 * limit)
        numbers: dict[KnownLane, int] = {}
        order = [numbers.setdefault(one, len(numbers)) for one in turns]
        return GatedPlan([Portion(one, 0, one.changes) for one in numbers], order, limit)

    def turned_away(self, plan: GatedPlan) -> None:
        """Gates let nothing through of what was planned. What keeps that priority waiting is not those above it."""
        for portion in plan.lanes[:1]:
            self._level(portion.lane).passed_over = None

    def _top(self, now: float) -> tuple[Level | None, list[KnownLane]]:
        """The priority that is next among those that have open lanes, and those lanes."""
        next_level: Level | None = None
        next_lanes: list[KnownLane] = []
        reached = 0.0
        for priority in sorted(self._levels, reverse=True):
            level = self._levels[priority]
            ready = self._open_lanes(level, now)
            if not ready:
                level.passed_over = None  # it does not save up time behind closed gates
            elif next_level is None:
                next_level, next_lanes, reached = level, ready, priority
                if not self._ageing:
                    break
            else:
                if level.passed_over is None:
                    level.passed_over = now
                aged = priority + (now - level.passed_over) // self._ageing
                # As good as the one above is enough: that one has had its turn since.
                if aged >= reached:
                    next_level, next_lanes, reached = level, ready, aged
        return next_level, next_lanes

    def _open_lanes(self, level: Level, now: float) -> list[KnownLane]:
        ready = []
        for one in level.lanes.values():
            if not self.gates.all_open(one.gates, now):
                one.share.out = True
                continue
            if one.share.out:
                one.share.out = False
                one.share.virtual = max(one.share.virtual, level.virtual)
            ready.append(one)
        return ready

    @staticmethod
    def gates_of(portions: Iterable[Portion]) -> set[Gate]:
        return {gate for portion in portions for gate in portion.known.gates}

    def gates_in_question(self, now: float) -> set[Gate]:
        """The gates of all lanes that the next claim may take from."""
        return {gate for one in self._top(now)[1] for gate in one.gates}

    def served(self, portions: Sequence[Portion], claimed: Sequence[ClaimedJob]) -> None:
        """Account for what a plan brought in: charge each tenant, and forget the lanes that ran empty."""
        for portion, jobs in by_portion(portions, claimed):
            self._charge(portion.known, jobs)
            if portion.changes != portion.known.changes:
                continue  # the lane was announced again while we claimed; the next claim goes by that
            if len(jobs) < portion.quota:
                self._remove(portion.known)
            elif jobs:
                portion.known.start = jobs[-1].position

    def _charge(self, known: KnownLane, jobs: Sequence[ClaimedJob]) -> None:
        share, level = known.share, self._level(known.lane)
        typical, total = share.cost, 0
        for job in jobs:
            typical += 0.1 * (job.cost - typical)
            total += job.cost
        share.cost = typical
        share.virtual += total / share.weight
        share.present = max(share.present, known.virtual)
        known.virtual += total
        if jobs:
            if share.tie == _FIRST:
                share.tie = self._rng.random()
            level.cost += 0.1 * (share.cost - level.cost)
            level.passed_over = None
