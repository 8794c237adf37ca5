"""Fair share: whose jobs a worker claims next. Tenants share by the work they were given, weighted.

Every worker process shares fairly by itself, and so the fleet does: there is no shared counter to lock, to lose or to
repair. Each tenant has a virtual time, the work it was given divided by its weight; the tenant with the least is next.
A tenant that comes late starts at the present virtual time: it neither waits for what others had before it nor catches
up on it. Each priority is shared separately, and lower ones are served when those above are empty or behind closed
`gates`. With `ageing`, a priority that got nothing for so many seconds counts one higher, and one more for each such
period, until it gets a claim: low priority is late and never starved. The kinds and queues of one tenant take turns
inside its share.

Pure: it asks no database and has no clock of its own.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.gates import Gate, Gates
from waybill_engine.lanes import Lane, Position
from waybill_engine.rules import Cap, Rate, Rules

if TYPE_CHECKING:
    from waybill_engine.claim import ClaimedJob

_REMEMBERED = 10_000
"""Tenants without work whose virtual time is kept, so that leaving and coming back gains nothing."""

_LEVELS = 64
"""Priorities that are remembered without having work."""

_FAR = 2.0**40
"""Virtual time at which it is set back: beyond 2^53 a float no longer sees a cost of 1."""


class _Share:
    """One tenant's part of one priority."""

    __slots__ = ("cost", "lanes", "out", "tie", "virtual", "weight")

    def __init__(self, virtual: float, weight: float, cost: float, tie: float) -> None:
        self.virtual = virtual
        self.weight = weight
        self.cost = cost
        """What its next job probably costs: a moving average of its last ones."""
        self.tie = tie
        self.out = False
        """All its lanes are behind closed gates. It does not save up virtual time there."""
        self.lanes: dict[Lane, _KnownLane] = {}


class _KnownLane:
    """A lane that probably has jobs."""

    __slots__ = ("announced", "changes", "gates", "lane", "share", "start", "virtual")

    def __init__(self, lane: Lane, share: _Share, start: Position, gates: tuple[Gate, ...], announced: int) -> None:
        self.lane = lane
        self.share = share
        self.start = start
        """Where the oldest job that may still wait here is. Those before it were claimed; until vacuum has removed them
        from the index, a scan from the lane's beginning would have to step over them."""
        # Start level with the tenant's other lanes; don't make it repay their past work.
        self.virtual: float = min((other.virtual for other in share.lanes.values()), default=0.0)
        self.gates = gates
        self.announced = announced
        """How many announcements there had been, of all lanes, when this lane was last announced."""
        self.changes = 0
        """How often its start was changed. A claim that was planned before a change knows less."""

    def starts_at(self, start: Position) -> None:
        self.start = start
        self.changes += 1


class _Level:
    """One priority: who has lanes there, and how much each was given."""

    __slots__ = ("cost", "lanes", "passed_over", "shares", "virtual")

    def __init__(self) -> None:
        self.passed_over: float | None = None
        """Since when it has had open lanes and got nothing, because of those above; None if it has not."""
        self.virtual = 0.0
        """The present virtual time: the least of those who have work. It never falls."""
        self.cost = 1.0
        """What jobs have cost here of late: the best guess for a tenant we know nothing about."""
        self.lanes: dict[Lane, _KnownLane] = {}
        self.shares: dict[str, _Share] = {}

    def advance(self, ready: Iterable[_KnownLane]) -> None:
        self.virtual = max(self.virtual, min(one.share.virtual for one in ready))
        if self.virtual > _FAR:
            for share in self.shares.values():
                share.virtual = max(share.virtual - self.virtual, 0.0)
                for one in share.lanes.values():
                    one.virtual = 0.0
            self.virtual = 0.0

    def forget_the_idle(self) -> None:
        for tenant in [tenant for tenant, share in self.shares.items() if not share.lanes][: _REMEMBERED // 2]:
            del self.shares[tenant]


class Portion(NamedTuple):
    """How many jobs to claim from one lane."""

    known: _KnownLane
    quota: int
    changes: int
    """The lane's changes when this was planned."""

    @property
    def lane(self) -> Lane:
        return self.known.lane

    @property
    def start(self) -> Position:
        return self.known.start


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
        self._levels: dict[int, _Level] = {}
        self._announcements = 0
        self._first_look = True

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
            self._add(lane, first)
            return
        known.announced = self._announcements
        known.starts_at(min(known.start, first))

    def found(self, heads: Mapping[Lane, Position], announcements: int, *, complete: bool = True) -> None:
        """A look found these lanes and, if it was complete, no others.

        A lane that was announced after the look began (`announcements` counts those before) may be missing in it, and
        stays.
        """
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

    def _level(self, lane: Lane) -> _Level:
        level = self._levels.get(lane.priority)
        if level is None:
            level = self._levels[lane.priority] = _Level()
        return level

    def _add(self, lane: Lane, start: Position) -> None:
        level = self._level(lane)
        share = level.shares.pop(lane.tenant, None)
        if share is None:
            weight = self._rules.weights.get(lane.tenant, 1.0)
            # Processes that start together must not all serve the same tenant first.
            phase = self._rng.random() / weight if self._first_look else 0.0
            share = _Share(level.virtual + phase, weight, level.cost, self._rng.random())
        level.shares[lane.tenant] = share  # at the end, so that the longest idle are forgotten first
        if not share.lanes:
            share.virtual = max(share.virtual, level.virtual)
        known = _KnownLane(lane, share, start, self.gates.of(lane), self._announcements)
        level.lanes[lane] = share.lanes[lane] = known
        if len(level.shares) > _REMEMBERED + len(level.lanes):
            level.forget_the_idle()

    def _remove(self, known: _KnownLane) -> None:
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

    @property
    def knows_some_limits(self) -> bool:
        """Whether a lane may be behind a cap or a rate that this worker has not heard of."""
        return self._rules.more

    def learn(self, caps: Iterable[Cap], rates: Iterable[Rate]) -> None:
        """These exist. A lane behind one that was unknown has jobs although a claim found none."""
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

    def plan(self, limit: int, now: float, rooms: Mapping[Gate, int] | None = None) -> list[Portion]:
        """Which lanes of the highest priority to claim from, and how many jobs of each, `limit` in all.

        `rooms` says how many jobs each gate lets through; a lane with a gate that is not in it is left out. Without
        `rooms` all gates count as wide open, to find out which of them matter.
        """
        level, ready = self._top(now)
        if level is None:
            return []
        if rooms is not None:
            ready = [one for one in ready if all(rooms.get(gate, 0) > 0 for gate in one.gates)]
            if not ready:
                level.passed_over = None  # it had its turn; what keeps it waiting is a gate and not those above
                return []
        level.advance(ready)
        if len(ready) == 1 and not ready[0].gates:
            return [Portion(ready[0], limit, ready[0].changes)]
        return [Portion(one, quota, one.changes) for one, quota in _share_out(ready, limit, rooms).items()]

    def _top(self, now: float) -> tuple[_Level | None, list[_KnownLane]]:
        """The priority that is next among those that have open lanes, and those lanes."""
        next_level: _Level | None = None
        next_lanes: list[_KnownLane] = []
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

    def _open_lanes(self, level: _Level, now: float) -> list[_KnownLane]:
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
        for portion, jobs in _by_portion(portions, claimed):
            self._charge(portion.known, jobs)
            if portion.changes != portion.known.changes:
                continue  # the lane was announced again while we claimed; the next claim goes by that
            if len(jobs) < portion.quota:
                self._remove(portion.known)
            elif jobs:
                portion.known.start = jobs[-1].position

    def _charge(self, known: _KnownLane, jobs: Sequence[ClaimedJob]) -> None:
        share, level = known.share, self._level(known.lane)
        typical, total = share.cost, 0
        for job in jobs:
            typical += 0.1 * (job.cost - typical)
            total += job.cost
        share.cost = typical
        share.virtual += total / share.weight
        known.virtual += total
        if jobs:
            level.cost += 0.1 * (share.cost - level.cost)
            level.passed_over = None


def portions_without(portions: Sequence[Portion], claimed: Sequence[ClaimedJob]) -> list[Portion]:
    """The portions of which nothing was claimed."""
    return [portion for portion, jobs in _by_portion(portions, claimed) if not jobs]


def _by_portion(
    portions: Sequence[Portion], claimed: Sequence[ClaimedJob]
) -> Iterable[tuple[Portion, Sequence[ClaimedJob]]]:
    if len(portions) == 1:
        return [(portions[0], claimed)]
    by_lane: dict[tuple[str, str, int, str], list[ClaimedJob]] = {}
    for job in claimed:
        by_lane.setdefault((job.queue, job.kind, job.priority, job.tenant), []).append(job)
    return [(portion, by_lane.get(portion.lane, ())) for portion in portions]


def _share_out(ready: Sequence[_KnownLane], limit: int, rooms: Mapping[Gate, int] | None) -> dict[_KnownLane, int]:
    """Give job after job to the tenant that has had the least, as far as the jobs' costs can be foreseen."""
    left = dict(rooms) if rooms is not None else None
    # Numbered, so that a heap never has to compare lanes or shares.
    lanes: dict[_Share, list[tuple[float, int, _KnownLane]]] = {}
    for number, one in enumerate(ready):
        lanes.setdefault(one.share, []).append((one.virtual, number, one))
    tenants = [(share.virtual, share.tie, number, share) for number, share in enumerate(lanes)]
    heapq.heapify(tenants)
    for mine in lanes.values():
        heapq.heapify(mine)
    quotas: dict[_KnownLane, int] = {}
    while limit > 0 and tenants:
        virtual, tie, number, share = tenants[0]
        mine = lanes[share]
        lane_virtual, lane_number, one = mine[0]
        if left is not None and not _pass(one.gates, left):
            heapq.heappop(mine)
            if not mine:
                heapq.heappop(tenants)
            continue
        quotas[one] = quotas.get(one, 0) + 1
        limit -= 1
        heapq.heapreplace(tenants, (virtual + share.cost / share.weight, tie, number, share))
        if len(mine) > 1:
            heapq.heapreplace(mine, (lane_virtual + share.cost, lane_number, one))
    return quotas


def _pass(gates: tuple[Gate, ...], left: dict[Gate, int]) -> bool:
    """Take one job's room at each gate, if all of them have some."""
    if any(left[gate] <= 0 for gate in gates):
        return False
    for gate in gates:
        left[gate] -= 1
    return True
