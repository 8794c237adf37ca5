"""While many announce at once, one worker passes announcements on. None is lost when it begins or stops to do that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.engine import WORK, Connect, some_jobs
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.announcements import LANES, RELAY, SCHEDULED, parse_lane
from waybill_engine.lanes import Lane
from waybill_engine.relay import hand_over, pass_on, switch_off, switch_on

ACME = Lane("default", "work", 0, "acme", "acme")

_CREATED = "SELECT min(created_at) FROM jobs WHERE tenant = $1"


class Ear:
    """Hears announcements on a connection of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heard: list[tuple[str, str]] = []

    @classmethod
    async def on(cls, connection: Connection, *channels: str) -> Ear:
        ear = cls(connection)
        for channel in channels:
            await connection.add_listener(channel, lambda *told: ear._heard.append((str(told[2]), str(told[3]))))
        return ear

    async def heard(self) -> list[tuple[str, str]]:
        """What was announced by transactions that have ended, since the last call."""
        await self._connection.execute("SELECT 1")
        heard, self._heard = self._heard, []
        return heard


async def ear(connect: Connect, *channels: str) -> Ear:
    return await Ear.on(await connect(), *(channels or (LANES,)))


@asynccontextmanager
async def relay_on(connect: Connect) -> AsyncIterator[Connection]:
    relay = await connect()
    assert await switch_on(relay)
    yield relay


async def test_while_the_relay_is_on_a_lane_is_announced_once_for_all_its_new_jobs(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect)
    async with relay_on(connect) as relay:
        for _ in range(3):
            await enqueue(mine, NewJob(WORK, "acme"))
        await enqueue_many(mine, [NewJob(WORK, "bigger") for _ in range(150)])
        assert await listener.heard() == []

        assert await pass_on(relay) == 4
        told = {parse_lane(text).lane.tenant: parse_lane(text) for _, text in await listener.heard()}
        assert {tenant: announced.jobs for tenant, announced in told.items()} == {"acme": 3, "bigger": 150}
        assert told["acme"].first.created_at == await mine.fetchval(_CREATED, "acme")
        assert await pass_on(relay) == 0


async def test_of_many_lanes_the_relay_names_the_queue(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect, "waybill_jobs", LANES)
    async with relay_on(connect) as relay:
        for number in range(65):
            await enqueue(mine, NewJob(WORK, f"tenant-{number}"))
        await pass_on(relay)
    assert await listener.heard() == [("waybill_jobs", "default")]


async def test_what_is_due_later_and_what_comes_back_is_passed_on_too(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect, SCHEDULED)
    async with relay_on(connect) as relay:
        await enqueue(mine, NewJob(WORK, "acme", delay=60))
        assert await listener.heard() == []
        await pass_on(relay)
    ((_, due),) = await listener.heard()
    assert 59 < float(due) <= 60


async def test_a_transaction_that_rolls_back_announces_nothing(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect)
    async with relay_on(connect) as relay:
        transaction = mine.transaction()
        await transaction.start()
        await enqueue(mine, NewJob(WORK, "acme"))
        await transaction.rollback()
        assert await pass_on(relay) == 0
        assert await switch_off(relay)
    assert await listener.heard() == []


async def test_the_relay_stays_on_until_the_last_transaction_that_counts_on_it_has_ended(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect)
    async with relay_on(connect) as relay:
        async with mine.transaction():
            await enqueue(mine, NewJob(WORK, "acme"))
            assert await pass_on(relay) == 0, "nobody sees the job yet"
            assert not await switch_off(relay)
        assert await switch_off(relay)
    ((_, text),) = await listener.heard()
    assert parse_lane(text).lane == ACME


async def test_a_relay_that_goes_off_makes_nobody_wait_and_loses_nothing(connect: Connect) -> None:
    clients, listener = [await connect() for _ in range(6)], await ear(connect)
    relay = await connect()
    stop = False

    async def switch() -> int:
        times = 0
        while not stop:
            assert await switch_on(relay)
            await pass_on(relay)
            while not await switch_off(relay):
                await asyncio.sleep(0)
            times += 1
        return times

    async def enqueue_some(number: int) -> None:
        for one in range(40):
            await enqueue(clients[number], NewJob(WORK, f"{number}-{one}"))

    switching = asyncio.create_task(switch())
    async with asyncio.timeout(60):
        await asyncio.gather(*(enqueue_some(number) for number in range(6)))
    stop = True
    assert await switching > 3
    tenants = sorted(parse_lane(text).lane.tenant for _, text in await listener.heard())
    assert tenants == sorted(f"{number}-{one}" for number in range(6) for one in range(40)), "each exactly once"


async def test_a_relay_that_dies_leaves_everybody_to_announce_for_themselves(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect)
    relay = await connect()
    assert await switch_on(relay)
    pid = relay.get_server_pid()
    relay.terminate()
    async with asyncio.timeout(30):
        while await mine.fetchval("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid):
            await asyncio.sleep(0.01)
    await some_jobs(mine, 1)
    assert len(await listener.heard()) == 1


async def test_a_relay_that_hands_over_leaves_what_is_under_way_to_the_next(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect, LANES, RELAY)
    first, second = await connect(), await connect()
    assert await switch_on(first)
    assert not await switch_on(second), "there is one already"
    async with mine.transaction():
        await enqueue(mine, NewJob(WORK, "acme"))
        await hand_over(first)
        assert await listener.heard() == [(RELAY, "")]
        assert await switch_on(second)
        assert not await switch_off(second)
    assert await switch_off(second)
    ((channel, _),) = await listener.heard()
    assert channel == LANES


async def test_a_single_enqueuer_announces_for_itself_and_asks_for_no_relay(connect: Connect) -> None:
    mine, listener = await connect(), await ear(connect, LANES, RELAY)
    for _ in range(5):
        await some_jobs(mine, 1)
    assert [channel for channel, _ in await listener.heard()] == [LANES] * 5


async def test_two_enqueuers_at_once_ask_for_a_relay(connect: Connect) -> None:
    mine, other, listener = await connect(), await connect(), await ear(connect, LANES, RELAY)
    async with mine.transaction():
        await some_jobs(mine, 1)
        async with asyncio.timeout(10):  # it waits for nobody
            await some_jobs(other, 1)
        assert {channel for channel, _ in await listener.heard()} == {LANES, RELAY}
    assert [channel for channel, _ in await listener.heard()] == [LANES]


async def test_changes_that_pages_follow_go_through_the_relay_too(connect: Connect) -> None:
    connection, relay = await connect(), await connect()
    ear = await Ear.on(await connect(), "waybill_changes")
    await connection.execute("SELECT waybill_tell('tenant:acme')")
    assert await ear.heard() == [("waybill_changes", "tenant:acme")]

    await switch_on(relay)
    for _ in range(3):
        await connection.execute("SELECT waybill_tell('tenant:acme')")
    assert await ear.heard() == []
    await pass_on(relay)
    assert await ear.heard() == [("waybill_changes", "tenant:acme")], "once for all of them"


async def test_no_function_notifies_in_each_transaction(connection: Connection) -> None:
    """Postgres would let the transactions that use it commit one at a time."""
    notifying = await connection.fetch("SELECT proname FROM pg_proc WHERE prosrc LIKE '%pg\\_notify%'")
    ours = {row["proname"] for row in notifying if not row["proname"].startswith("pg_")}
    assert ours == {"waybill_announce"}
