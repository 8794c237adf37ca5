"""Rates apply in the whole cluster, by the database's clock, whoever claims or has not heard of them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from support.claimants import Claimant, fill
from support.clock import Clock
from support.engine import WORK, Connect, count, some_jobs
from waybill.db.database import Connection
from waybill.errors import Refused
from waybill.messages import languages
from waybill_engine import ClaimedJob, NewJob
from waybill_engine.enqueue import enqueue
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import released, settle, succeed
from waybill_engine.lanes import BEGINNING, Lane
from waybill_engine.rates import list_rates, rate_by_default, remove_rate, set_rate
from waybill_engine.rules import Pace, Rate

SHAPES = [{"tenant": "a"}, {"kind": "work"}, {"tenant": "a", "kind": "work"}]


class Time:
    """A clock for claims: gates that were found closed are tried again when it has moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 100.0
        return self.now


async def long_lived(connection: Connection, *, seed: int = 0, kinds: Sequence[str] = ("work", "other")) -> Claimant:
    """A claimant whose lease outlasts what the tests move the clock by."""
    worker = await Claimant.start(connection, seed=seed, kinds=kinds)
    await connection.execute("UPDATE workers SET lease_expires_at = now() + interval '1 year'")
    return worker


async def starts(connection: Connection, where: str = "true") -> list[datetime]:
    rows = await connection.fetch(f"SELECT started_at FROM jobs WHERE started_at IS NOT NULL AND {where} ORDER BY 1")
    return [row[0] for row in rows]


def most_within(moments: Sequence[datetime], seconds: float) -> int:
    """The most of these moments that lie in one stretch of so many seconds, its end excluded."""
    most = first = 0
    for last, moment in enumerate(moments):
        while moments[first] <= moment - timedelta(seconds=seconds):
            first += 1
        most = max(most, last - first + 1)
    return most


# What a rate is


@pytest.mark.parametrize("shape", SHAPES, ids=["tenant", "kind", "both"])
async def test_as_many_start_as_the_rate_says_and_the_rest_evenly_after_them(
    hot: Connection, clock: Clock, shape: dict[str, str]
) -> None:
    await fill(hot, 30, tenant="a")
    await fill(hot, 5, tenant="b", kind="other")
    await set_rate(hot, Pace(10, 70_000, burst=4), **shape)  # four at once, and one every 10,000 s
    worker, now = await long_lived(hot), Time()

    async def started() -> int:
        before = await count(hot, "tenant = 'a' AND state = 'running'")
        for _ in range(5):
            await worker.look()
            await worker.claim(100, clock=now)
        return await count(hot, "tenant = 'a' AND state = 'running'") - before

    assert await started() == 4
    assert await count(hot, "tenant = 'b' AND state = 'queued'") == 0
    await clock.forward(9_000)
    assert await started() == 0
    await clock.forward(1_000)
    assert await started() == 1
    for _ in range(5):
        await clock.forward(10_000)
        assert await started() == 1
    await clock.forward(1_000_000)
    assert await started() == 4
    assert most_within(await starts(hot, "tenant = 'a'"), 70_000) == 10


async def test_of_several_rates_each_one_holds_and_caps_hold_beside_them(hot: Connection) -> None:
    for tenant, kind in itertools.product("abc", ("work", "other")):
        await fill(hot, 20, tenant=tenant, kind=kind)
    await set_rate(hot, Pace(4, 3600, burst=4), tenant="a")
    await set_rate(hot, Pace(7, 3600, burst=7), kind="work")
    await set_rate(hot, Pace(1, 3600), tenant="b", kind="work")
    await hot.execute("INSERT INTO caps (tenant, kind, most) VALUES ('c', 'other', 2)")
    worker = await long_lived(hot)
    await worker.take(200)
    rows = await hot.fetch("SELECT tenant, kind, count(*) FROM jobs WHERE state = 'running' GROUP BY 1, 2")
    running = Counter({(row["tenant"], row["kind"]): row["count"] for row in rows})
    assert running["a", "work"] + running["a", "other"] == 4
    assert sum(running[tenant, "work"] for tenant in "abc") == 7
    assert (running["b", "work"], running["b", "other"], running["c", "other"]) == (1, 20, 2)


async def test_a_start_counts_though_the_job_is_given_back_and_though_it_has_ended(hot: Connection) -> None:
    await fill(hot, 10)
    await set_rate(hot, Pace(2, 3600, burst=2), kind="work")
    worker = await long_lived(hot)
    first, second = await worker.take(10)
    await succeed(hot, worker.id, [(first.id, first.token)])
    await settle(hot, worker.id, [(second.id, second.token, released("back"))])
    await worker.look()
    assert await worker.claim(10, clock=Time()) == []


async def test_a_claim_that_is_rolled_back_has_cost_nothing(hot: Connection) -> None:
    await fill(hot, 10)
    await set_rate(hot, Pace(2, 3600, burst=2), kind="work")
    worker, now = await long_lived(hot), Time()
    transaction = hot.transaction()
    await transaction.start()
    assert len(await worker.claim(10, clock=now)) == 2
    await transaction.rollback()
    await worker.look()
    assert len(await worker.claim(10, clock=now)) == 2


async def test_a_closed_rate_opens_for_its_worker_when_the_next_job_is_due(hot: Connection) -> None:
    await fill(hot, 10)
    await set_rate(hot, Pace(1, 30), kind="work")
    worker = await long_lived(hot)
    now = 5000.0
    started = await worker.claim(10, clock=lambda: now)
    assert len(started) == 1
    assert not worker.fair_share.any_open(now + 29)
    opening = worker.fair_share.next_opening(now)
    assert opening is not None
    assert opening == pytest.approx(now + 30, abs=0.001)
    worker.fair_share.gates.reopen_caps(started)  # the end of a run does not open a rate
    assert not worker.fair_share.any_open(now + 29)


async def test_what_makes_no_rate_is_refused(hot: Connection) -> None:
    for pace, who in [
        (Pace(1, 1), {}),
        (Pace(0, 1), {"tenant": "a"}),
        (Pace(1, 0), {"tenant": "a"}),
        (Pace(1, 1, burst=2), {"tenant": "a"}),
        (Pace(1, 1), {"kind": "No Kind"}),
        (Pace(1, 31 * 86400), {"tenant": "a"}),
    ]:
        with pytest.raises(Refused):
            await set_rate(hot, pace, **who)
    assert await list_rates(hot) == []
    first = await set_rate(hot, Pace(100, 1), tenant="a")
    assert first.burst == 10
    again = await set_rate(hot, Pace(2, 1), tenant="a")
    assert await list_rates(hot) == [Rate(first.id, "a", None, 2, 1.0, 1)]
    assert again.id == first.id


# Workers that have not heard


async def test_a_new_rate_holds_a_worker_that_has_not_heard(hot: Connection) -> None:
    await fill(hot, 20, tenant="a")
    await fill(hot, 3, tenant="b", kind="other")
    worker = await long_lived(hot)
    await set_rate(hot, Pace(2, 3600, burst=2), tenant="a")
    assert {claimed.tenant for claimed in await worker.claim(10)} <= {"b"}
    await worker.look()
    await worker.take(100)
    assert await count(hot, "tenant = 'a' AND state = 'running'") == 2
    assert await count(hot, "tenant = 'b' AND state = 'queued'") == 0


async def test_a_lane_behind_a_rate_that_its_worker_never_heard_of_is_claimed_at_once(hot: Connection) -> None:
    await set_rate(hot, Pace(2, 3600, burst=2), tenant="late")
    worker = await long_lived(hot)
    for _ in range(5):
        await enqueue(hot, NewJob(WORK, "late"))
        worker.fair_share.announce(Lane("default", "work", 0, "late", "late"), BEGINNING)
    assert len(await worker.take(5)) == 2


@pytest.mark.parametrize("after", [Pace(5, 3600, burst=5), None], ids=["changed", "lifted"])
async def test_a_changed_rate_counts_from_the_next_claim_of_a_worker_that_has_not_heard(
    hot: Connection, after: Pace | None
) -> None:
    await fill(hot, 20)
    await set_rate(hot, Pace(2, 3600, burst=2), tenant="acme")
    worker = await long_lived(hot)
    if after is None:
        await remove_rate(hot, tenant="acme")
    else:
        await set_rate(hot, after, tenant="acme")
    assert len(await worker.claim(100)) == (20 if after is None else 5)


async def test_a_rate_that_is_raised_does_not_wait_for_what_the_old_one_was_owed(hot: Connection, clock: Clock) -> None:
    await fill(hot, 20)
    await set_rate(hot, Pace(1, 86400), kind="work")
    worker, now = await long_lived(hot), Time()
    assert len(await worker.claim(5, clock=now)) == 1
    await set_rate(hot, Pace(1, 2_000), kind="work")
    await worker.look()
    assert await worker.claim(5, clock=now) == []  # nor does it give a second start for nothing
    await clock.forward(2_000)
    assert len(await worker.claim(5, clock=now)) == 1


# At the same time


async def test_several_that_claim_at_once_never_exceed_the_rate(connect: Connect) -> None:
    connections = [await connect() for _ in range(4)]
    await fill(connections[0], 200)
    await set_rate(connections[0], Pace(9, 3600, burst=9), kind="work")
    workers = [await Claimant.start(connection) for connection in connections]
    now = Time()

    async def claim(worker: Claimant) -> None:
        for _ in range(20):
            await worker.look()
            await worker.claim(2, clock=now)

    await asyncio.gather(*map(claim, workers))
    assert await count(connections[0], "state = 'running'") == 9


async def test_a_worker_frozen_in_a_claim_does_not_keep_others_from_what_has_no_rate(connect: Connect) -> None:
    admin = await connect()
    await fill(admin, 20, tenant="paced")
    await fill(admin, 20, tenant="free")
    await set_rate(admin, Pace(2, 3600, burst=2), tenant="paced")
    frozen, other = [await Claimant.start(await connect(), seed=seed) for seed in range(2)]
    transaction = frozen.connection.transaction()
    await transaction.start()
    while "paced" not in {claimed.tenant for claimed in await frozen.claim(2)}:
        pass
    try:
        async with asyncio.timeout(10):
            taken = await other.take(40)
    finally:
        await transaction.rollback()
    assert {claimed.tenant for claimed in taken} == {"free"}


async def test_tenants_behind_one_rate_take_turns(hot: Connection, clock: Clock) -> None:
    await fill(hot, 100, tenant="big")
    await fill(hot, 10, tenant="small")
    await set_rate(hot, Pace(1, 10), kind="work")
    worker, now = await long_lived(hot), Time()
    order: list[ClaimedJob] = []
    for _ in range(20):
        order += await worker.claim(5, clock=now)
        await clock.forward(10)
    assert Counter(claimed.tenant for claimed in order) == {"big": 10, "small": 10}


TENANTS = ("a", "b", "c")
KINDS = ("work", "other", "third")


@pytest.mark.parametrize("rounds", [100, pytest.param(1_500, marks=[pytest.mark.heavy, pytest.mark.timeout(900)])])
async def test_no_rate_is_exceeded_and_no_start_lost_in_random_interleavings(
    connect: Connect, clock: Clock, rounds: int
) -> None:
    """Against a model: by the starts of all jobs, no stretch of time ever saw more than the rate allows."""
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance = random.Random(seed)
    admin = await connect()
    for tenant, kind in itertools.product(TENANTS, KINDS):
        await fill(admin, rounds, tenant=tenant, kind=kind)
    everybody = [who for who in itertools.product((None, *TENANTS), (None, *KINDS)) if any(who)]
    for who in chance.sample(everybody, 8):
        most = chance.randint(1, 6)
        pace = Pace(most, chance.uniform(5, 60), chance.randint(1, most))
        await set_rate(admin, pace, tenant=who[0], kind=who[1])
    workers = [await long_lived(await connect(), seed=seed + n, kinds=KINDS) for n in range(3)]
    now = Time()

    async def act(worker: Claimant) -> None:
        if chance.random() < 0.2:
            await worker.look()
        if chance.random() < 0.1:
            transaction = worker.connection.transaction()
            await transaction.start()
            await worker.claim(chance.randint(1, 4), clock=now)
            await transaction.rollback()
            await worker.look()
        for claimed in await worker.claim(chance.randint(1, 4), clock=now):
            if chance.random() < 0.7:
                await succeed(worker.connection, worker.id, [(claimed.id, claimed.token)])

    for _ in range(rounds):
        await asyncio.gather(*map(act, workers))
        await clock.forward(chance.choice((0.0, 0.5, 3.0, 20.0)))
    rates = await list_rates(admin)
    assert len(rates) == 8
    for rate in rates:
        found = await starts(admin, f"'{rate.tenant}' IN ('None', tenant) AND '{rate.kind}' IN ('None', kind)")
        assert most_within(found, rate.seconds) <= rate.most, rate

    # After a long pause, a rate by itself lets its burst through, and no more.
    rate = chance.choice(rates)
    await admin.execute("DELETE FROM rates WHERE id <> $1", rate.id)
    await admin.execute("UPDATE rates SET seconds = 1000 * seconds, spacing = 1000 * spacing")  # longer than the test
    await clock.forward(1_000_000)
    one = await long_lived(admin, kinds=KINDS)
    taken = await one.take(100_000)
    under = [one for one in taken if rate.tenant in (None, one.tenant) and rate.kind in (None, one.kind)]
    assert len(under) == rate.burst


# Defaults, and what explain says


async def test_a_default_applies_until_an_operator_decides(hot: Connection) -> None:
    def paces(rates: Sequence[Rate]) -> list[tuple[str | None, int, float]]:
        return [(rate.kind, rate.most, rate.seconds) for rate in rates]

    await rate_by_default(hot, "work", Pace(5, 1))
    await rate_by_default(hot, "work", Pace(6, 1))
    assert paces(await list_rates(hot)) == [("work", 6, 1.0)]
    await rate_by_default(hot, "work", None)
    assert await list_rates(hot) == []
    await rate_by_default(hot, "work", Pace(6, 1))
    await set_rate(hot, Pace(7, 1), kind="work")
    await rate_by_default(hot, "work", Pace(6, 1))
    assert paces(await list_rates(hot)) == [("work", 7, 1.0)]
    assert await remove_rate(hot, kind="work")
    assert not await remove_rate(hot, kind="work")
    await rate_by_default(hot, "work", Pace(6, 1))
    await rate_by_default(hot, "work", None)
    assert await list_rates(hot) == []
    await rate_by_default(hot, "work", Pace(6, 1))
    assert await list_rates(hot) == []
    await set_rate(hot, Pace(8, 1), kind="work")
    assert paces(await list_rates(hot)) == [("work", 8, 1.0)]


async def test_a_closed_rate_is_the_reason_until_the_next_job_may_start(hot: Connection, clock: Clock) -> None:
    await some_jobs(hot, 3)
    await set_rate(hot, Pace(2, 600, burst=2), kind="work", tenant="acme")
    worker = await long_lived(hot)
    await worker.take(3)
    (waiting,) = [row["id"] for row in await hot.fetch("SELECT id FROM jobs WHERE state = 'queued'")]
    found = await explain(hot, waiting)
    opens_at = await hot.fetchval("SELECT paid_up_to - interval '600 s' FROM rates")
    assert found.reason is Reason.RATE
    assert found.sentence == (
        "At most 2 jobs of kind work of tenant acme may start in 600 s; "
        f"the next may start at {opens_at:%Y-%m-%d %H:%M:%S} UTC."
    )
    assert found.facts["opens_at"] == opens_at
    await clock.forward(601)
    assert (await explain(hot, waiting)).reason is Reason.NEXT


@pytest.mark.parametrize(
    ("shape", "key", "who"),
    [
        ({"tenant": "acme"}, "explain.rate.tenant", "milik tenant acme"),
        ({"kind": "work"}, "explain.rate.kind", "jenis work"),
        ({"tenant": "acme", "kind": "work"}, "explain.rate.both", "jenis work milik tenant acme"),
    ],
    ids=["tenant", "kind", "both"],
)
async def test_which_rate_it_is_can_be_said_in_the_readers_language(
    hot: Connection, shape: dict[str, str], key: str, who: str
) -> None:
    await some_jobs(hot, 2)
    await set_rate(hot, Pace(1, 3600.5), **shape)
    worker = await long_lived(hot)
    await worker.take(2)
    found = await explain(hot, await hot.fetchval("SELECT id FROM jobs WHERE state = 'queued'"))
    assert found.key == key
    said = languages()["id"].tell(found.says)
    assert said is not None
    assert said.startswith(f"Paling banyak 1 tugas {who} boleh dimulai dalam 3600.5 detik; tugas berikutnya")
