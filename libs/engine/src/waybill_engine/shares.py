"""Shares: what one worker knows of the lanes that have jobs, and how much each tenant was given there.

`fair_share` decides by it. Pure: it asks no database and has no clock of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.gates import Gate
from waybill_engine.lanes import Lane, Position

if TYPE_CHECKING:
    from waybill_engine.claim import ClaimedJob

REMEMBERED = 10_000
"""Tenants without work whose virtual time is kept, so that leaving and coming back gains nothing."""

_FAR = 2.0**40
"""Virtual time at which it is set back: beyond 2^53 a float no longer sees a cost of 1."""


class Share:
    """One tenant's part of one priority."""

    __slots__ = ("cost", "lanes", "out", "present", "tie", "virtual", "weight")

    def __init__(self, virtual: float, weight: float, cost: float, tie: float) -> None:
        self.virtual = virtual
        self.weight = weight
        self.cost = cost
        """What its next job probably costs: a moving average of its last ones."""
        self.tie = tie
        self.out = False
        """All its lanes are behind closed gates. It does not save up virtual time there."""
        self.lanes: dict[Lane, KnownLane] = {}
        self.present = 0.0
        """The virtual time among its lanes: that of the lane that gave last, before it gave."""


class KnownLane:
    """A lane that probably has jobs."""

    __slots__ = ("announced", "changes", "gates", "lane", "share", "start", "virtual")

    def __init__(self, lane: Lane, share: Share, start: Position, gates: tuple[Gate, ...], announced: int) -> None:
        self.lane = lane
        self.share = share
        self.start = start
        """Where the oldest job that may still wait here is. Those before it were claimed; until vacuum has removed them
        from the index, a scan from the lane's beginning would have to step over them."""
        # Start level with the tenant's other lanes; don't make it repay their past work.
        self.virtual = share.present
        self.gates = gates
        self.announced = announced
        """How many announcements there had been, of all lanes, when this lane was last announced."""
        self.changes = 0
        """How often its start was changed. A claim that was planned before a change knows less."""

    def starts_at(self, start: Position) -> None:
        self.start = start
        self.changes += 1


class Level:
    """One priority: who has lanes there, and how much each was given."""

    __slots__ = ("cost", "lanes", "passed_over", "shares", "virtual")

    def __init__(self) -> None:
        self.passed_over: float | None = None
        """Since when it has had open lanes and got nothing, because of those above; None if it has not."""
        self.virtual = 0.0
        """The present virtual time: the least of those who have work. It never falls."""
        self.cost = 1.0
        """What jobs have cost here of late: the best guess for a tenant we know nothing about."""
        self.lanes: dict[Lane, KnownLane] = {}
        self.shares: dict[str, Share] = {}

    def advance(self, ready: Iterable[KnownLane]) -> None:
        self.virtual = max(self.virtual, min(one.share.virtual for one in ready))
        if self.virtual > _FAR:
            for share in self.shares.values():
                share.virtual = max(share.virtual - self.virtual, 0.0)
                share.present = 0.0
                for one in share.lanes.values():
                    one.virtual = 0.0
            self.virtual = 0.0

    def forget_the_idle(self) -> None:
        for tenant in [tenant for tenant, share in self.shares.items() if not share.lanes][: REMEMBERED // 2]:
            del self.shares[tenant]


class Portion(NamedTuple):
    """How many jobs to claim from one lane."""

    known: KnownLane
    quota: int
    changes: int
    """The lane's changes when this was planned."""

    @property
    def lane(self) -> Lane:
        return self.known.lane

    @property
    def start(self) -> Position:
        return self.known.start


class GatedPlan(NamedTuple):
    """Whose turn it is to give a job, one after the other, for a claim that has to ask gates first."""

    lanes: Sequence[Portion]
    """Each lane once, with nothing taken from it yet."""
    turns: Sequence[int]
    """Positions in `lanes`. There are more turns than jobs are wanted, because gates refuse some."""
    limit: int
    """How many jobs are wanted."""

    def portions(self, quotas: Iterable[int]) -> list[Portion]:
        """What is claimed if the gates let so many jobs of each lane through."""
        return [lane._replace(quota=quota) for lane, quota in zip(self.lanes, quotas, strict=True) if quota]


def portions_without(portions: Sequence[Portion], claimed: Sequence[ClaimedJob]) -> list[Portion]:
    """The portions of which nothing was claimed."""
    return [portion for portion, jobs in by_portion(portions, claimed) if not jobs]


def by_portion(
    portions: Sequence[Portion], claimed: Sequence[ClaimedJob]
) -> Iterable[tuple[Portion, Sequence[ClaimedJob]]]:
    if len(portions) == 1:
        return [(portions[0], claimed)]
    by_lane: dict[tuple[str, str, int, str, str], list[ClaimedJob]] = {}
    for job in claimed:
        by_lane.setdefault((job.queue, job.kind, job.priority, job.tenant, job.owner), []).append(job)
    return [(portion, by_lane.get(portion.lane, ())) for portion in portions]


def reached(portions: Sequence[Portion], claimed: Sequence[ClaimedJob], limit: int) -> Sequence[Portion]:
    """The portions that a claim came to: it goes from one to the next until it has `limit` jobs.

    It may have left some of the last one's quota, which says nothing about that lane.
    """
    if len(claimed) < limit or len(portions) == 1:
        return portions
    took = [len(jobs) for _, jobs in by_portion(portions, claimed)]
    last = max(number for number, jobs in enumerate(took) if jobs)
    return [*portions[:last], portions[last]._replace(quota=took[last])]


def in_turn(ready: Sequence[KnownLane]) -> Iterator[KnownLane]:
    """For ever: the lane that gives the next job, of the tenant that has had the least, as far as the jobs' costs can
    be foreseen."""
    # Numbered, so that a heap never has to compare lanes or shares.
    lanes: dict[Share, list[tuple[float, int, KnownLane]]] = {}
    for number, one in enumerate(ready):
        lanes.setdefault(one.share, []).append((one.virtual, number, one))
    tenants = [(share.virtual, share.tie, number, share) for number, share in enumerate(lanes)]
    heapq.heapify(tenants)
    for mine in lanes.values():
        heapq.heapify(mine)
    while True:
        virtual, tie, number, share = tenants[0]
        mine = lanes[share]
        lane_virtual, lane_number, one = mine[0]
        yield one
        heapq.heapreplace(tenants, (virtual + share.cost / share.weight, tie, number, share))
        if len(mine) > 1:
            heapq.heapreplace(mine, (lane_virtual + share.cost, lane_number, one))
