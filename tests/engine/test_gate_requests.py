"""A claim behind caps and rates is one round trip, and the room that it is given is shared out to its lanes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import pytest

from support.claimants import Claimant, fill
from support.engine import Connect, start_worker
from waybill.db.database import Connection
from waybill_engine.caps import set_cap
from waybill_engine.rates import set_rate
from waybill_engine.rules import Pace

_ROOMS = "SELECT quotas, rooms FROM waybill_rooms('{}', '{}', '{}', '{}', $1, $2, $3, $4, $5, $6)"


class Watched:
    """A connection that remembers what it was used for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.uses: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.uses.append(name)
        return getattr(self._connection, name)


async def claim_and_watch(worker: Claimant, limit: int) -> tuple[int, list[str]]:
    """How many jobs one claim takes, and what it used its connection for."""
    watched = Watched(worker.connection)
    worker.connection = cast("Connection", watched)
    return len(await worker.claim(limit)), watched.uses


@pytest.mark.parametrize(
    ("caps", "rate"), [(["t0"], None), (["t0", "t1", "t2"], None), (["t0", "t1"], Pace(100, 60)), ([], Pace(100, 60))]
)
async def test_a_claim_behind_gates_is_one_statement(hot: Connection, caps: list[str], rate: Pace | None) -> None:
    await fill(hot, 30, tenant="t", tenants=3)
    for tenant in caps:
        await set_cap(hot, 100, tenant=tenant)
    if rate is not None:
        await set_rate(hot, rate, kind="work")
    worker = await Claimant.start(hot)
    assert await claim_and_watch(worker, 9) == (9, ["fetch"])


async def test_a_claim_that_finds_a_cap_full_takes_what_is_behind_no_other_gate_in_the_same_statement(
    hot: Connection,
) -> None:
    await fill(hot, 30, tenant="t", tenants=3)
    await set_cap(hot, 0, tenant="t0")
    worker = await Claimant.start(hot)
    assert await claim_and_watch(worker, 9) == (9, ["fetch"])


async def test_lanes_behind_one_cap_share_the_little_room_that_it_has(hot: Connection) -> None:
    await fill(hot, 60, tenant="t", tenants=3)
    await set_cap(hot, 6, kind="work")
    worker = await Claimant.start(hot)
    assert Counter(job.tenant for job in await worker.claim(30)) == {"t0": 2, "t1": 2, "t2": 2}


async def test_a_cap_that_another_claims_under_is_left_to_it_and_the_others_are_not(connect: Connect) -> None:
    connection, other = await connect(), await connect()
    await fill(connection, 30, tenant="t", tenants=2)
    await set_cap(connection, 5, tenant="t0")
    await set_cap(connection, 4, tenant="t1")
    worker = await Claimant.start(connection)
    async with other.transaction():
        await other.execute("SELECT FROM caps WHERE tenant = 't0' FOR UPDATE")
        claimed = await worker.claim(20)
    assert Counter(job.tenant for job in claimed) == {"t1": 4}


async def test_what_runs_on_other_workers_counts_for_one_cap_and_for_several(hot: Connection) -> None:
    await fill(hot, 40, tenant="t", tenants=2)
    for _ in range(2):
        other = await Claimant.start(hot)
        assert len(await other.claim(4)) == 4
    await start_worker(hot, kinds=("work",))
    await set_cap(hot, 5, tenant="t0")
    worker = await Claimant.start(hot)
    assert Counter(job.tenant for job in await worker.claim(30))["t0"] == 1
    await set_cap(hot, 40, kind="work")
    await set_cap(hot, 7, tenant="t0")
    worker = await Claimant.start(hot)
    assert Counter(job.tenant for job in await worker.claim(30))["t0"] == 2


async def rooms(
    connection: Connection, known: Sequence[int], behind: Sequence[Sequence[int]], turns: Sequence[int], limit: int
) -> list[int]:
    """What the function lets lanes give that are behind gates of known room. Lanes and gates count from 0."""
    asked = [(turn, lane + 1, gate + 1) for turn, lane in enumerate(turns) for gate in behind[lane] or (-1,)]
    planned = Counter(turns[:limit])
    row = await connection.fetchrow(
        _ROOMS,
        known,
        [turn for turn, _, _ in asked],
        [lane for _, lane, _ in asked],
        [gate for _, _, gate in asked],
        [planned[lane] for lane in range(len(behind))],
        limit,
    )
    assert row is not None
    assert row["rooms"] == known
    return list(row["quotas"])


async def test_no_gate_lets_more_through_than_it_has_room_for_and_nothing_is_refused_without_need(
    hot: Connection,
) -> None:
    chance = random.Random(7)
    for _ in range(150):
        known = [chance.choice([-1, 0, 1, 3, 10, 1000]) for _ in range(chance.randint(1, 4))]
        behind = [
            sorted(chance.sample(range(len(known)), chance.randint(0, min(2, len(known)))))
            for _ in range(chance.randint(1, 5))
        ]
        limit = chance.randint(1, 12)
        turns = [chance.randrange(len(behind)) for _ in range(2 * limit)]
        quotas = await rooms(hot, known, behind, turns, limit)
        assert sum(quotas) <= limit
        assert all(quota <= turns.count(lane) for lane, quota in enumerate(quotas))
        through = [
            sum(quotas[lane] for lane, gates in enumerate(behind) if gate in gates) for gate in range(len(known))
        ]
        assert all(passed <= max(room, 0) for passed, room in zip(through, known, strict=True))
        if all(room >= limit for room in known):
            assert quotas == [turns[:limit].count(lane) for lane in range(len(behind))]
        some_open = [turn for turn in turns if all(known[gate] > 0 for gate in behind[turn])]
        assert (sum(quotas) > 0) == bool(some_open)
