"""Caps apply in the whole cluster, whoever claims, crashes or has not heard of them, and no slot is ever lost."""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections.abc import Sequence

import asyncpg
import pytest

from support.claimants import Claimant, fill
from support.engine import NO_SETTLE, Connect, count, failure, find_contradictions, until_blocked
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound, Refused
from waybill_engine import ClaimedJob
from waybill_engine.caps import cap_by_default, list_caps, remove_cap, set_cap
from waybill_engine.control import cancel, retry
from waybill_engine.finish import RunOutcome, judge, released, settle, succeed
from waybill_engine.lease import holdings, stop
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker
from waybill_engine.retry import RetryPolicy

_EXCEEDED = """
SELECT caps.tenant, caps.kind, caps.most, count(*) AS running
  FROM caps JOIN jobs ON lease_owner IS NOT NULL
        AND COALESCE(jobs.tenant = caps.tenant, true) AND COALESCE(jobs.kind = caps.kind, true)
 GROUP BY caps.id HAVING count(*) > most
"""

SHAPES = [{"tenant": "a"}, {"kind": "work"}, {"tenant": "a", "kind": "work"}]


async def exceeded(connection: Connection) -> list[asyncpg.Record]:
    return await connection.fetch(_EXCEEDED)


def ids(claimed_jobs: Sequence[ClaimedJob]) -> list[tuple[uuid.UUID, int]]:
    return [(claimed.id, claimed.token) for claimed in claimed_jobs]


class Time:
    """A clock for claims: gates that were found closed are tried again when it has moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 10.0
        return self.now


# What a cap is


@pytest.mark.parametrize("shape", SHAPES, ids=["tenant", "kind", "both"])
async def test_as_many_as_the_cap_says_and_one_more_for_each_that_ends(connect: Connect, shape: dict[str, str]) -> None:
    connection = await connect()
    await fill(connection, 20, tenant="a")
    await fill(connection, 20, tenant="b", kind="other")
    await set_cap(connection, 3, **shape)
    first, second = [await Claimant.start(connection) for _ in range(2)]
    taken = [claimed for claimed in await first.take(100) if claimed.tenant == "a"]
    assert len(taken) == 3
    assert await count(connection, "tenant = 'b' AND state = 'queued'") == 0
    assert await second.take(100) == []

    await succeed(connection, first.id, ids(taken[:1]))
    await settle(connection, first.id, [(taken[1].id, taken[1].token, released("back"))])
    await second.look()
    second.fair_share.gates.reopen_caps(taken[:2])
    assert len(await second.take(100)) == 2
    assert await exceeded(connection) == []


async def test_a_cap_of_nothing_holds_and_what_runs_goes_on(connect: Connect) -> None:
    connection = await connect()
    await fill(connection, 5)
    worker = await Claimant.start(connection)
    running = await worker.take(2)
    await set_cap(connection, 0, tenant="acme")
    await worker.look()
    assert await worker.take(5) == []
    assert await succeed(connection, worker.id, ids(running)) == {claimed.id for claimed in running}
    worker.fair_share.gates.reopen_caps(running)
    assert await worker.take(5) == []
    assert await remove_cap(connection, tenant="acme")
    await worker.look()
    assert len(await worker.take(5)) == 3


async def test_of_several_caps_each_one_holds(connect: Connect) -> None:
    connection = await connect()
    for tenant, kind in itertools.product("abc", ("work", "other")):
        await fill(connection, 20, tenant=tenant, kind=kind)
    await set_cap(connection, 4, tenant="a")
    await set_cap(connection, 7, kind="work")
    await set_cap(connection, 1, tenant="b", kind="work")
    await set_cap(connection, 2, tenant="c", kind="other")
    worker = await Claimant.start(connection)
    await worker.take(200)
    running = {
        (row["tenant"], row["kind"]): row["count"]
        for row in await connection.fetch(
            "SELECT tenant, kind, count(*) FROM jobs WHERE state = 'running' GROUP BY tenant, kind"
        )
    }
    assert await exceeded(connection) == []
    # Nothing more could run: every cap that matters is full.
    assert running["a", "work"] + running["a", "other"] == 4
    assert running["a", "work"] + running["b", "work"] + running["c", "work"] == 7
    assert (running["b", "work"], running["b", "other"], running["c", "other"]) == (1, 20, 2)


async def test_a_cap_names_somebody_and_is_a_number(connect: Connect) -> None:
    connection = await connect()
    for most, who in [(1, {}), (-1, {"tenant": "a"}), (1, {"kind": "No Kind"}), (2**31, {"tenant": "a"})]:
        with pytest.raises(Refused):
            await set_cap(connection, most, **who)
    assert not await remove_cap(connection, tenant="a")
    first = await set_cap(connection, 1, tenant="a")
    again = await set_cap(connection, 2, tenant="a")
    assert (first.id, again.most) == (again.id, 2)
    assert await list_caps(connection) == [again]


# Workers that have not heard


@pytest.mark.parametrize(("before", "after", "expected"), [(5, 2, 2), (2, 5, 5), (3, 0, 0), (0, 3, 3), (2, None, 20)])
async def test_a_changed_cap_counts_from_the_next_claim_of_a_worker_that_has_not_heard(
    connect: Connect, before: int, after: int | None, expected: int
) -> None:
    connection = await connect()
    await fill(connection, 20)
    await set_cap(connection, before, tenant="acme")
    worker = await Claimant.start(connection)
    if after is None:
        await remove_cap(connection, tenant="acme")
    else:
        await set_cap(connection, after, tenant="acme")
    assert len(await worker.claim(100)) == expected
    assert await exceeded(connection) == []


@pytest.mark.parametrize("shape", SHAPES, ids=["tenant", "kind", "both"])
async def test_a_new_cap_holds_a_worker_that_has_not_heard_and_lets_the_others_through(
    connect: Connect, shape: dict[str, str]
) -> None:
    connection = await connect()
    await fill(connection, 20, tenant="a")
    await fill(connection, 3, tenant="b", kind="other")
    worker = await Claimant.start(connection)
    await set_cap(connection, 2, **shape)
    assert {claimed.tenant for claimed in await worker.claim(10)} <= {"b"}
    await worker.look()
    assert [claimed.tenant for claimed in await worker.take(100)].count("a") == 2
    assert await count(connection, "tenant = 'b' AND state = 'queued'") == 0


async def test_a_cap_that_was_lifted_and_set_anew_holds_a_worker_that_knows_the_old_one(connect: Connect) -> None:
    connection = await connect()
    await fill(connection, 20)
    await set_cap(connection, 1, tenant="acme")
    worker = await Claimant.start(connection)
    await remove_cap(connection, tenant="acme")
    await set_cap(connection, 2, tenant="acme")
    assert len(await worker.claim(10)) <= 2
    await worker.look()
    await worker.take(10)
    assert await count(connection, "state = 'running'") == 2


async def test_a_cap_lowered_while_a_claim_is_under_way_waits_for_it(connect: Connect) -> None:
    claiming, changing = await connect(), await connect()
    await fill(claiming, 20)
    await set_cap(claiming, 5, tenant="acme")
    worker, other = [await Claimant.start(claiming) for _ in range(2)]
    async with claiming.transaction():
        assert len(await worker.claim(3)) == 3
        lowering = asyncio.create_task(set_cap(changing, 4, tenant="acme"))
        await until_blocked(claiming, changing)
    assert (await lowering).most == 4
    assert len(await other.claim(10)) == 1


# At the same time


async def test_two_workers_that_race_for_the_last_slot_never_both_win(connect: Connect) -> None:
    connections = [await connect() for _ in range(2)]
    await fill(connections[0], 200)
    await set_cap(connections[0], 1, tenant="acme")
    workers = [await Claimant.start(connection) for connection in connections]
    clock = Time()
    won: list[uuid.UUID] = []
    for _ in range(100):
        taken = await asyncio.gather(*(worker.claim(1, clock=clock) for worker in workers))
        ((worker, claimed),) = [
            (worker, claimed_jobs[0]) for worker, claimed_jobs in zip(workers, taken, strict=True) if claimed_jobs
        ]
        won.append(worker.id)
        await succeed(worker.connection, worker.id, ids([claimed]))
    assert len(won) == 100


async def test_what_another_has_claimed_but_not_committed_counts(connect: Connect) -> None:
    first, second = [await Claimant.start(await connect()) for _ in range(2)]
    await fill(first.connection, 20)
    await set_cap(first.connection, 2, tenant="acme")
    for worker in (first, second):
        await worker.look()
    transaction = first.connection.transaction()
    await transaction.start()
    assert len(await first.claim(10)) == 2
    time = Time()
    assert await second.claim(10, clock=time) == []  # it does not wait to learn what becomes of that
    await transaction.rollback()
    assert len(await second.claim(10, clock=time)) == 2
    assert len(await first.claim(10, clock=Time())) == 0


async def test_a_worker_frozen_in_a_claim_under_a_cap_does_not_keep_others_from_what_is_not_capped(
    connect: Connect,
) -> None:
    """It locks the cap's row until the server ends its transaction; only those under that cap should have to wait."""
    admin = await connect()
    await fill(admin, 20, tenant="capped")
    await set_cap(admin, 2, tenant="capped")
    frozen = await Claimant.start(await connect())
    await fill(admin, 20, tenant="free")
    other = await Claimant.start(await connect())
    transaction = frozen.connection.transaction()
    await transaction.start()
    assert await frozen.claim(1)
    try:
        async with asyncio.timeout(5):
            taken = await other.take(20)
    finally:
        await transaction.rollback()
    assert [claimed.tenant for claimed in taken] == ["free"] * 20


async def test_a_crash_makes_room_when_the_jobs_are_rescued_and_not_before(connect: Connect) -> None:
    connection = await connect()
    await fill(connection, 20)
    await set_cap(connection, 2, tenant="acme")
    dead, other = [await Claimant.start(connection) for _ in range(2)]
    assert len(await dead.take(10)) == 2
    await connection.execute("UPDATE workers SET lease_expires_at = now() - interval '1 s' WHERE id = $1", dead.id)
    clock = Time()
    assert await other.claim(10, clock=clock) == []
    assert len(await rescue(connection, settle_time=NO_SETTLE)) == 2
    # Suspects run alone now, and are capped like anybody.
    suspects = other.for_suspects()
    await suspects.look()
    assert len(await suspects.claim(1)) == 1
    assert len(await other.claim(10, clock=clock)) == 1
    assert await exceeded(connection) == []


async def test_a_worker_that_stops_leaves_its_slots(connect: Connect) -> None:
    connection = await connect()
    await fill(connection, 20)
    await set_cap(connection, 3, tenant="acme")
    leaving, other = [await Claimant.start(connection) for _ in range(2)]
    assert len(await leaving.take(10)) == 3
    await stop(connection, leaving.id)
    assert len(await other.take(10)) == 3


# Everything at once

TENANTS = ("a", "b", "c")
KINDS = ("work", "other", "third")
AT_ONCE = RetryPolicy(retries=5, base=0.0, jitter=0.0)


class CappedWorker:
    """Takes random steps, and after each of them asks somebody else whether a cap is exceeded."""

    def __init__(self, chance: random.Random, connection: Connection, watching: Connection, lock: asyncio.Lock) -> None:
        self.chance = chance
        self.connection = connection
        self.watching = watching
        self.lock = lock
        self.running: list[ClaimedJob] = []
        self.clock = Time()
        self.claimed = 0

    async def start_over(self) -> None:
        self.running = []
        self.me = await Claimant.start(self.connection, seed=self.chance.randrange(1000), kinds=KINDS)
        self.suspects = self.me.for_suspects()

    async def step(self) -> None:
        steps = [self.claim] * 5 + [self.claim_inside, self.claim_and_fail, self.claim_isolated, self.forget]
        steps += [self.finish] * 3 + [self.fail, self.release, self.crash, self.cancel, self.retry, self.look]
        await self.chance.choice(steps)()
        async with self.lock:  # one connection, one question at a time
            found = await exceeded(self.watching)
        assert found == []

    async def claim(self) -> None:
        taken = await self.me.claim(self.chance.randint(1, 5), clock=self.clock)
        self.running += taken
        self.claimed += len(taken)

    async def claim_inside(self) -> None:
        """As others will see it, before they do."""
        async with self.connection.transaction():
            await self.claim()
            assert await exceeded(self.connection) == []

    async def claim_and_fail(self) -> None:
        """The connection ends before the commit."""
        transaction = self.connection.transaction()
        await transaction.start()
        await self.me.claim(self.chance.randint(1, 5), clock=self.clock)
        await transaction.rollback()

    async def claim_isolated(self) -> None:
        await self.suspects.look()
        taken = await self.suspects.claim(self.chance.randint(1, 2), clock=self.clock)
        self.running += taken
        self.claimed += len(taken)

    async def forget(self) -> None:
        """A claim whose answer was lost: the next heartbeat finds what it took, and gives it back."""
        await self.me.claim(self.chance.randint(1, 3), clock=self.clock)
        known = {claimed.id for claimed in self.running}
        there = (await holdings(self.connection, self.me.id)).tokens
        lost = [(job_id, token, released("lost")) for job_id, token in there.items() if job_id not in known]
        await settle(self.connection, self.me.id, lost)

    def some(self) -> list[ClaimedJob]:
        mine = self.chance.sample(self.running, self.chance.randint(0, min(3, len(self.running))))
        self.running = [claimed for claimed in self.running if claimed not in mine]
        return mine

    async def end(self, outcome: RunOutcome | None = None) -> None:
        await settle(
            self.connection,
            self.me.id,
            [(one.id, one.token, outcome or judge(one, failure(), AT_ONCE, self.chance)) for one in self.some()],
        )
        await promote_due(self.connection)

    async def finish(self) -> None:
        await succeed(self.connection, self.me.id, ids(self.some()))

    async def fail(self) -> None:
        await self.end()

    async def release(self) -> None:
        await self.end(released("back"))

    async def crash(self) -> None:
        if self.chance.random() < 0.5:
            await rescue_worker(self.connection, self.me.id)
        else:
            await self.connection.execute(
                "UPDATE workers SET lease_expires_at = now() - interval '1 s' WHERE id = $1", self.me.id
            )
            await rescue(self.connection, settle_time=NO_SETTLE)
        await self.start_over()

    async def any_job(self, states: Sequence[str]) -> uuid.UUID | None:
        found: uuid.UUID | None = await self.connection.fetchval(
            "SELECT id FROM jobs WHERE state = ANY ($1) ORDER BY random() LIMIT 1", states
        )
        return found

    async def cancel(self) -> None:
        if job_id := await self.any_job(["queued", "running"]):
            try:
                await cancel(self.connection, job_id)
            except (Conflict, NotFound):  # somebody was faster
                return

    async def retry(self) -> None:
        if job_id := await self.any_job(["failed", "dead_letter", "cancelled"]):
            try:
                await retry(self.connection, job_id)
            except (Conflict, NotFound):
                return

    async def look(self) -> None:
        await self.me.look()


@pytest.mark.parametrize("steps", [800, pytest.param(10_000, marks=[pytest.mark.heavy, pytest.mark.timeout(900)])])
async def test_no_cap_is_exceeded_and_no_slot_lost_in_random_interleavings(connect: Connect, steps: int) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance = random.Random(seed)
    admin = await connect()
    lanes = list(itertools.product(TENANTS, KINDS))
    for tenant, kind in lanes:
        await fill(admin, steps // 3, tenant=tenant, kind=kind)
    everybody = [who for who in itertools.product((None, *TENANTS), (None, *KINDS)) if any(who)]
    for who in chance.sample(everybody, 7):
        await set_cap(admin, chance.randint(0, 5), tenant=who[0], kind=who[1])
    await set_cap(admin, chance.randint(1, 5), tenant="a")
    await set_cap(admin, chance.randint(1, 5), kind="work")
    await set_cap(admin, chance.randint(1, 2), tenant="b", kind="other")
    caps = await list_caps(admin)
    print(caps)
    watching, lock = await connect(), asyncio.Lock()
    workers = [CappedWorker(chance, await connect(), watching, lock) for _ in range(4)]

    async def work(worker: CappedWorker) -> None:
        await worker.start_over()
        for _ in range(steps // len(workers)):
            await worker.step()

    await asyncio.gather(*map(work, workers))
    assert sum(worker.claimed for worker in workers) > steps // 20, "too few to prove anything"
    assert await find_contradictions(admin) == []

    # When all is over, each cap by itself lets through exactly as many as it says.
    for worker in workers:
        await stop(worker.connection, worker.me.id)
    assert await count(admin, "state = 'running'") == 0
    await admin.execute("TRUNCATE jobs, job_events")
    for tenant, kind in lanes:
        await fill(admin, 6, tenant=tenant, kind=kind)
    for cap in caps:
        await admin.execute("DELETE FROM caps")
        await set_cap(admin, cap.most, tenant=cap.tenant, kind=cap.kind)
        one = await Claimant.start(admin, kinds=KINDS)
        taken = await one.take(1000)
        under = [
            claimed for claimed in taken if cap.tenant in (None, claimed.tenant) and cap.kind in (None, claimed.kind)
        ]
        assert len(under) == cap.most
        await stop(admin, one.id)


# Default caps, which apply until an operator decides


async def caps(connection: Connection) -> dict[tuple[str | None, str | None], int]:
    return {(cap.tenant, cap.kind): cap.most for cap in await list_caps(connection)}


async def test_a_default_holds_and_follows_its_setting(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf", "extract_file"], 32)
    assert await caps(hot) == {(None, "convert_pdf"): 32, (None, "extract_file"): 32}
    await cap_by_default(hot, ["convert_pdf"], 8)
    assert await caps(hot) == {(None, "convert_pdf"): 8, (None, "extract_file"): 32}
    await cap_by_default(hot, ["convert_pdf"], 0)
    assert await caps(hot) == {(None, "extract_file"): 32}
    await cap_by_default(hot, [], 5)
    assert await caps(hot) == {(None, "extract_file"): 32}


async def test_what_an_operator_set_stays_though_it_is_the_default_number(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf"], 32)
    await set_cap(hot, 32, kind="convert_pdf")
    for most in (4, 0):
        await cap_by_default(hot, ["convert_pdf"], most)
        assert await caps(hot) == {(None, "convert_pdf"): 32}


async def test_what_an_operator_lifted_stays_lifted(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await remove_cap(hot, kind="convert_pdf")
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await caps(hot) == {}


async def test_a_tenants_cap_is_another_matter(connect: Connect) -> None:
    hot = await connect()
    await set_cap(hot, 2, tenant="acme", kind="convert_pdf")
    await set_cap(hot, 3, tenant="acme")
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await caps(hot) == {(None, "convert_pdf"): 32, ("acme", None): 3, ("acme", "convert_pdf"): 2}


async def test_a_decision_made_while_a_worker_starts_is_kept(connect: Connect) -> None:
    operator, starting = await connect(), await connect()
    decision = operator.transaction()
    await decision.start()
    await set_cap(operator, 4, kind="convert_pdf")
    default = asyncio.create_task(cap_by_default(starting, ["convert_pdf"], 32))
    await until_blocked(await connect(), starting)
    await decision.commit()
    await default
    assert await caps(operator) == {(None, "convert_pdf"): 4}
