"""Decides which workers react to an announcement. If all did, every job would cost a claim of each worker.

All workers hear the same announcements and know the fleet from their last look, so they agree on who is first without
talking: each worker gets a number for each announcement, and the lowest is first. A worker that is first is so in its
own eyes, whomever else it knows; so somebody always reacts, even while the fleet changes. As many workers react at once
as there are new jobs. The next one in line tries a moment later, in case the first is gone; the others leave it to
their polls. A worker that has no free slot when it is its turn announces the lane again, to everybody.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence

from waybill.db import Database
from waybill_engine.announcements import EVERYBODY, Announced, announce
from waybill_engine.fair_share import FairShare
from waybill_engine.lanes import Lane, Position
from waybill_engine.rules import Peer
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.slots import Slots

_SECOND_TRY = 0.05
"""Seconds after which the next in line makes sure that the first has taken the jobs."""

_HANDING_ON = 0.05
"""Seconds for which a worker without a free slot gathers what it announces again."""


class Turns:
    def __init__(
        self, db: Database, health: DatabaseHealth, slots: Slots, fair_share: FairShare, on_turn: Callable[[], None]
    ) -> None:
        """`on_turn` is called when there is something to claim."""
        self._db = db
        self._health = health
        self._slots = slots
        self._fair_share = fair_share
        self._on_turn = on_turn
        self._fleet: Sequence[Peer] = ()
        self._serving: dict[tuple[str, str], list[int]] = {}
        self._second_tries: dict[Lane, Position] = {}
        self._to_hand_on: dict[Lane, Position] = {}
        self._full = asyncio.Event()

    def apply(self, fleet: Sequence[Peer]) -> None:
        """These workers hear announcements, as of the last look."""
        if fleet != self._fleet:
            self._fleet = fleet
            self._serving.clear()

    def rank(self) -> int:
        """This worker's place in the fleet, whatever is announced. The first is 0."""
        return self._place([uuid.UUID(peer.id).int for peer in self._fleet], 0)

    def heard(self, announced: Announced) -> None:
        lane, first, jobs = announced
        place = self._place_in_line(lane, first)
        # Whoever has room under a cap may take the next job, so all workers must know of it.
        if place < jobs or self._fair_share.gates.of(lane):
            self._fair_share.announce(lane, first)
            self._on_turn()
            if place < jobs < len(self._fleet) and len(self._slots) >= self._slots.concurrency:
                _earlier(self._to_hand_on, lane, first)
                self._full.set()
        elif place == jobs:
            if not self._second_tries:
                asyncio.get_running_loop().call_later(_SECOND_TRY, self._try)
            _earlier(self._second_tries, lane, first)

    def take(self, lanes: Sequence[Announced], serves: Callable[[Lane], bool]) -> bool:
        """Claim jobs that this worker itself has made claimable. False if others are needed for that."""
        for lane, first, _ in lanes:
            if serves(lane):
                self._fair_share.announce(lane, first)
        self._on_turn()
        room = self._slots.concurrency - len(self._slots)
        return sum(one.jobs for one in lanes) <= room and all(serves(one.lane) for one in lanes)

    async def run(self) -> None:
        """For ever: announce again what this worker has no free slot for."""
        while True:
            await self._full.wait()
            await asyncio.sleep(_HANDING_ON)
            self._full.clear()
            lanes, self._to_hand_on = self._to_hand_on, {}
            if len(self._slots) >= self._slots.concurrency:  # otherwise it has claimed them, or is about to
                await self._health.persist(lambda lanes=lanes: self._hand_on(lanes))  # type: ignore[misc]

    async def _hand_on(self, lanes: dict[Lane, Position]) -> None:
        async with self._db.hot() as connection:
            await announce(connection, [Announced(lane, first, EVERYBODY) for lane, first in lanes.items()])

    def _try(self) -> None:
        for lane, first in self._second_tries.items():
            self._fair_share.announce(lane, first)
        self._second_tries.clear()
        self._on_turn()

    def _place_in_line(self, lane: Lane, first: Position) -> int:
        serving = self._serving.get((lane.queue, lane.kind))
        if serving is None:
            peers = (peer for peer in self._fleet if lane.queue in peer.queues and lane.kind in peer.kinds)
            serving = self._serving[lane.queue, lane.kind] = [uuid.UUID(peer.id).int for peer in peers]
        return self._place(serving, first.created_at.microsecond)

    def _place(self, fleet: Sequence[int], turn: int) -> int:
        """How many workers of the fleet come before this one."""
        mine = _number(self._slots.worker_id.int, turn)
        return sum(_number(peer, turn) < mine for peer in fleet)


def _number(worker: int, turn: int) -> int:
    """A number that looks random, the same for everybody. The lowest is first."""
    return ((worker ^ (turn * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93 >> 32) & 0xFFFFFFFF


def _earlier(positions: dict[Lane, Position], lane: Lane, first: Position) -> None:
    positions[lane] = min(positions.get(lane, first), first)
