"""Who is next: tenants share a worker by the work they have had, weighed.

Every worker process is fair by itself, and so the fleet is: there is no shared counter to lock, to lose or to heal.
Each tenant has a virtual time, the work it was given divided by its weight; whoever has the least is next. A tenant
that comes late starts at the present virtual time: it neither waits for what others had before nor catches up on it.
Each priority is shared for itself, and lower ones are looked at when those above are empty or held back. The kinds and
queues of one tenant take turns inside its share.

Pure: no database, no clock of its own.
"""

from __future__ import annotations

import heapq
import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.lanes import Cap, Lane, Rules

if TYPE_CHECKING:
    from waybill_engine.claim import Lease

Gate = Cap | str
"""What may close a lane: a cap, or the dependency whose breaker is not closed."""

_REMEMBERED = 10_000
"""Tenants without work whose virtual time is kept, so that leaving and coming back gains nothing."""

_MOMENT = 0.5
"""Seconds a closed gate is left alone, unless one of our own runs ends before that."""

_BUSY = 0.01
"""Seconds after which a gate that somebody else was at may be free."""

_LEVELS = 64
"""Priorities that may be known without having work."""

_FAR = 2.0**40
"""Virtual time from which it is set back: beyond 2^53 a float no longer sees a cost of 1."""


class _Share:
    """One tenant's part of one priority."""

    __slots__ = ("cost", "lanes", "out", "tie", "virtual", "weight")

    def __init__(self, virtual: float, weight: float, cost: float, tie: float) -> None:
        self.virtual = virtual
        self.weight = weight
        self.cost = cost
        """What its next job probably costs: a moving average of the last."""
        self.tie = tie
        self.out = False
        """All its lanes are behind closed gates: it does not save up virtual time there."""
        self.lanes: dict[Lane, _Ready] = {}


class _Ready:
    """A lane that probably has jobs."""

    __slots__ = ("changes", "gates", "lane", "news", "share", "start", "virtual")

    def __init__(self, lane: Lane, share: _Share, start: uuid.UUID, gates: tuple[Gate, ...], news: int) -> None:
        self.lane = lane
        self.share = share
        self.start = start
        """The oldest job that may still wait here. What lies before it was claimed, and may be in the way for as long
        as vacuum cannot remove it."""
        # Beside its sisters, not behind all they had before it came.
        self.virtual: float = min((sister.virtual for sister in share.lanes.values()), default=0.0)
        self.gates = gates
        self.news = news
        """When it was last announced, on the count of all announcements."""
        self.changes = 0
        """How often somebody said where it starts: a claim that was under way meanwhile knows less."""

    def starts_at(self, start: uuid.UUID) -> None:
        self.start = start
        self.changes += 1


class _Level:
    """One priority: who has lanes there, and how far they have got."""

    __slots__ = ("cost", "lanes", "shares", "virtual")

    def __init__(self) -> None:
        self.virtual = 0.0
        """The present virtual time: the least of those who have work. It never falls."""
        self.cost = 1.0
        """What jobs cost here of late: the best guess for a tenant nothing is known of."""
        self.lanes: dict[Lane, _Ready] = {}
        self.shares: dict[str, _Share] = {}

    def advance(self, ready: Iterable[_Ready]) -> None:
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

    ready: _Ready
    quota: int
    changes: int
    """Of the lane, when this was planned."""

    @property
    def lane(self) -> Lane:
        return self.ready.lane

    @property
    def start(self) -> uuid.UUID:
        return self.ready.start


class Shares:
    def __init__(self, dependencies: Mapping[str, str | None] | None = None, rng: random.Random | None = None) -> None:
        self._dependencies = dependencies or {}
        self._rng = rng or random.Random()  # noqa: S311 - breaks ties, guards nothing
        self._rules = Rules()
        self._caps: dict[tuple[str | None, str | None], Cap] = {}
        self._levels: dict[int, _Level] = {}
        self._closed: dict[Gate, float] = {}
        self._busy: dict[Gate, float] = {}
        self._news = 0
        self._first_look = True

    def __len__(self) -> int:
        return sum(len(level.lanes) for level in self._levels.values())

    # What there is

    @property
    def news(self) -> int:
        """How many announcements there were; `seen` wants the count from before the look."""
        return self._news

    def announce(self, lane: Lane, first: uuid.UUID) -> None:
        """A lane has something, from this job on."""
        self._news += 1
        ready = self._level(lane).lanes.get(lane)
        if ready is None:
            self._add(lane, first)
            return
        ready.news = self._news
        ready.starts_at(min(ready.start, first))

    def seen(self, heads: Mapping[Lane, uuid.UUID], news: int, *, complete: bool = True) -> None:
        """A look found these lanes, and if it is complete, no others.

        What was announced after it began (`news`) may be missing in it, and stays.
        """
        for lane, head in heads.items():
            ready = self._level(lane).lanes.get(lane)
            if ready is None:
                self._add(lane, head)
            else:
                ready.starts_at(head if ready.news <= news else min(ready.start, head))
        if complete:
            for level in self._levels.values():
                for ready in [one for one in level.lanes.values() if one.lane not in heads and one.news <= news]:
                    self._remove(ready)
            if len(self._levels) > _LEVELS:
                self._levels = {priority: level for priority, level in self._levels.items() if level.lanes}
        self._first_look = False

    def _level(self, lane: Lane) -> _Level:
        level = self._levels.get(lane.priority)
        if level is None:
            level = self._levels[lane.priority] = _Level()
        return level

    def _add(self, lane: Lane, start: uuid.UUID) -> None:
        level = self._level(lane)
        share = level.shares.pop(lane.tenant, None)
        if share is None:
            weight = self._rules.weights.get(lane.tenant, 1.0)
            # Processes that start together must not all serve the same tenant first.
            phase = self._rng.random() / weight if self._first_look else 0.0
            share = _Share(level.virtual + phase, weight, level.cost, self._rng.random())
        level.shares[lane.tenant] = share  # last, so that the longest idle are forgotten first
        if not share.lanes:
            share.virtual = max(share.virtual, level.virtual)
        level.lanes[lane] = share.lanes[lane] = _Ready(lane, share, start, self._gates_of(lane), self._news)
        if len(level.shares) > _REMEMBERED + len(level.lanes):
            level.forget_the_idle()

    def _remove(self, ready: _Ready) -> None:
        level = self._level(ready.lane)
        if level.lanes.get(ready.lane) is ready:
            del level.lanes[ready.lane]
            del ready.share.lanes[ready.lane]

    # The rules

    def rule(self, rules: Rules) -> None:
        if rules == self._rules:
            return
        self._rules = rules
        self._caps = {(cap.tenant, cap.kind): cap for cap in rules.caps}
        self._closed.clear()
        self._busy.clear()
        for level in self._levels.values():
            for tenant, share in level.shares.items():
                share.weight = rules.weights.get(tenant, 1.0)
            for ready in level.lanes.values():
                ready.gates = self._gates_of(ready.lane)

    def _gates_of(self, lane: Lane) -> tuple[Gate, ...]:
        keys = ((lane.tenant, lane.kind), (lane.tenant, None), (None, lane.kind))
        gates: tuple[Gate, ...] = tuple(cap for key in keys if (cap := self._caps.get(key)) is not None)
        dependency = self._dependencies.get(lane.kind)
        return gates if dependency is None or dependency not in self._rules.held else (*gates, dependency)

    def dependency(self, kind: str) -> str | None:
        return self._dependencies.get(kind)

    def close(self, gate: Gate, now: float, seconds: float | None = None) -> None:
        """Nothing comes through this gate for so long, or for a moment."""
        self._closed[gate] = now + (_MOMENT if seconds is None else max(seconds, 0.01))
        self._busy.pop(gate, None)

    def busy(self, gate: Gate, now: float) -> None:
        """Somebody else is claiming behind this gate. Each time it is left alone for twice as long, up to a moment."""
        pause = self._busy[gate] = min(2 * self._busy.get(gate, _BUSY / 2), _MOMENT)
        self._closed[gate] = now + pause

    def reopen(self) -> None:
        """Runs of our own have ended: there may be room under any cap. Breakers say themselves when they change."""
        self._closed = {gate: until for gate, until in self._closed.items() if isinstance(gate, str)}

    def next_opening(self, now: float) -> float | None:
        """When to try again, on the caller's clock; None when no lane waits behind a closed gate."""
        waiting = (
            max((self._closed.get(gate, now) for gate in one.gates), default=now)
            for level in self._levels.values()
            for one in level.lanes.values()
        )
        return min((until for until in waiting if until > now), default=None) if self._closed else None

    # Sharing out

    def any_open(self, now: float) -> bool:
        """Whether there is a lane to claim from."""
        return any(self._is_open(one, now) for level in self._levels.values() for one in level.lanes.values())

    def plan(self, limit: int, now: float, rooms: Mapping[Gate, int] | None = None) -> list[Portion]:
        """From which lanes of the highest priority to claim how many, `limit` in all.

        `rooms` says how many each gate lets through; a lane with a gate that is not in it is left out. Without `rooms`
        gates are taken to be wide open, to find out which of them matter.
        """
        level, ready = self._top(now)
        if level is None:
            return []
        if rooms is not None:
            ready = [one for one in ready if all(rooms.get(gate, 0) > 0 for gate in one.gates)]
            if not ready:
                return []
        level.advance(ready)
        if len(ready) == 1 and not ready[0].gates:
            return [Portion(ready[0], limit, ready[0].changes)]
        return [Portion(one, quota, one.changes) for one, quota in _share_out(ready, limit, rooms).items()]

    def _top(self, now: float) -> tuple[_Level | None, list[_Ready]]:
        """The highest priority that has open lanes, and those lanes."""
        for priority in sorted(self._levels, reverse=True):
            level = self._levels[priority]
            ready = []
            for one in level.lanes.values():
                if not self._is_open(one, now):
                    one.share.out = True
                    continue
                if one.share.out:
                    one.share.out = False
                    one.share.virtual = max(one.share.virtual, level.virtual)
                ready.append(one)
            if ready:
                return level, ready
        return None, []

    def _is_open(self, ready: _Ready, now: float) -> bool:
        return not any(self._closed.get(gate, now) > now for gate in ready.gates) if self._closed else True

    @staticmethod
    def gates(portions: Iterable[Portion]) -> set[Gate]:
        return {gate for portion in portions for gate in portion.ready.gates}

    def gates_in_question(self, now: float) -> set[Gate]:
        """All that the lanes have that may be claimed from next."""
        return {gate for one in self._top(now)[1] for gate in one.gates}

    def served(self, portions: Sequence[Portion], leases: Sequence[Lease]) -> None:
        """What the plan brought in, oldest first: everybody pays for what they got, and short lanes are empty."""
        for portion, mine in _sorted_out(portions, leases):
            self._charge(portion.ready, mine)
            if portion.changes != portion.ready.changes:
                continue  # somebody told more of it while we claimed; the next claim goes by that
            if len(mine) < portion.quota:
                self._remove(portion.ready)
            elif mine:
                portion.ready.start = mine[-1].id

    def _charge(self, ready: _Ready, leases: Sequence[Lease]) -> None:
        share, level = ready.share, self._level(ready.lane)
        typical, total = share.cost, 0
        for lease in leases:
            typical += 0.1 * (lease.cost - typical)
            total += lease.cost
        share.cost = typical
        share.virtual += total / share.weight
        ready.virtual += total
        level.cost += 0.1 * (share.cost - level.cost) if leases else 0.0


def _sorted_out(portions: Sequence[Portion], leases: Sequence[Lease]) -> Iterable[tuple[Portion, Sequence[Lease]]]:
    if len(portions) == 1:
        return [(portions[0], leases)]
    got: dict[tuple[str, str, int, str], list[Lease]] = {}
    for lease in leases:
        got.setdefault((lease.queue, lease.kind, lease.priority, lease.tenant), []).append(lease)
    return [(portion, got.get(portion.lane, ())) for portion in portions]


def _share_out(ready: Sequence[_Ready], limit: int, rooms: Mapping[Gate, int] | None) -> dict[_Ready, int]:
    """Job by job to whoever has had the least, as far as their jobs' costs can be told in advance."""
    left = dict(rooms) if rooms is not None else None
    # Numbered, so that a heap never has to compare what cannot be compared.
    lanes: dict[_Share, list[tuple[float, int, _Ready]]] = {}
    for number, one in enumerate(ready):
        lanes.setdefault(one.share, []).append((one.virtual, number, one))
    tenants = [(share.virtual, share.tie, number, share) for number, share in enumerate(lanes)]
    heapq.heapify(tenants)
    for mine in lanes.values():
        heapq.heapify(mine)
    quotas: dict[_Ready, int] = {}
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
    if any(left[gate] <= 0 for gate in gates):
        return False
    for gate in gates:
        left[gate] -= 1
    return True
