"""Only the run that owns the job makes a stored file a result."""

from __future__ import annotations

import asyncio

import pytest

from support.engine import Connect, running_job, start_worker, state, stored, take_isolated, until_blocked
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.errors import LeaseLost
from waybill.ids import made_at, new_id
from waybill_engine import ClaimedJob, State
from waybill_engine.artefacts import artefact_key, publish
from waybill_engine.artefacts import published as find
from waybill_engine.finish import succeed
from waybill_engine.queries import artefacts
from waybill_engine.rescue import rescue_worker


async def published(connection: Connection, claimed: ClaimedJob) -> dict[str, tuple[str, int]]:
    rows = await connection.fetch("SELECT * FROM job_artefacts WHERE job_id = $1", claimed.id)
    return {row["name"]: (row["storage_key"], row["lease_token"]) for row in rows}


async def test_the_holder_publishes_and_may_publish_again(hot: Connection, db: Database) -> None:
    _, claimed = await running_job(hot)
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "a.xml", stored("one"), "application/xml")
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "b.json", stored("two"), "application/json")
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "a.xml", stored("three"), "application/xml")
    assert await published(hot, claimed) == {"a.xml": ("three", 1), "b.json": ("two", 1)}
    async with db.transaction() as session:
        found = await artefacts(session, claimed.id)
    assert [(one.name, one.storage_key, one.bytes) for one in found] == [("a.xml", "three", 3), ("b.json", "two", 3)]


async def test_what_is_published_is_found_by_its_name(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "a.xml", stored("one"), "application/xml")
    assert await find(hot, claimed.id, "a.xml") == ("one", "application/xml", 3, "ab" * 32)
    assert await find(hot, claimed.id, "b.xml") is None


async def test_a_stale_owner_publishes_nothing_whatever_became_of_the_job(hot: Connection) -> None:
    worker, stale = await running_job(hot)

    async def try_it() -> None:
        with pytest.raises(LeaseLost):
            await publish(hot, stale.worker_id, stale.id, stale.token, "out", stored("stale"), "text/plain")

    await rescue_worker(hot, worker.id)
    await try_it()  # queued again
    next_worker = await start_worker(hot)
    (claimed,) = await take_isolated(hot, next_worker)
    await try_it()  # somebody else's
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "out", stored("right"), "text/plain")
    await try_it()
    await succeed(hot, next_worker.id, [(claimed.id, claimed.token)])
    await try_it()  # done
    assert await published(hot, stale) == {"out": ("right", 2)}


async def test_a_finished_owner_publishes_nothing_more(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    with pytest.raises(LeaseLost):
        await publish(hot, claimed.worker_id, claimed.id, claimed.token, "out", stored("late"), "text/plain")


async def test_a_later_run_replaces_what_an_earlier_one_published(hot: Connection) -> None:
    worker, first = await running_job(hot)
    await publish(hot, first.worker_id, first.id, first.token, "out", stored("first"), "text/plain")
    await rescue_worker(hot, worker.id)
    (second,) = await take_isolated(hot, await start_worker(hot))
    await publish(hot, second.worker_id, second.id, second.token, "out", stored("second"), "text/plain")
    assert await published(hot, second) == {"out": ("second", 2)}


async def test_a_publication_that_is_rolled_back_was_none(db: Database, hot: Connection) -> None:
    _, claimed = await running_job(hot)

    async def publish_then_fail() -> None:
        async with db.transaction() as session:
            await publish(
                await driver(session), claimed.worker_id, claimed.id, claimed.token, "out", stored("k"), "text/plain"
            )
            raise RuntimeError("the handler fails")

    with pytest.raises(RuntimeError):
        await publish_then_fail()
    assert await published(hot, claimed) == {}


async def test_nobody_takes_the_job_over_between_publishing_and_committing(connect: Connect) -> None:
    publishing, rescuing = await connect(), await connect()
    worker, claimed = await running_job(publishing)
    async with publishing.transaction():
        await publish(publishing, claimed.worker_id, claimed.id, claimed.token, "out", stored("k"), "text/plain")
        waiting = asyncio.create_task(rescue_worker(rescuing, worker.id))
        await until_blocked(publishing, rescuing)
        assert await succeed(publishing, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
    assert await waiting == []
    assert await state(publishing, claimed.id) is State.SUCCEEDED


async def test_a_publication_that_waited_for_a_rescue_is_stale(connect: Connect) -> None:
    publishing, rescuing = await connect(), await connect()
    worker, claimed = await running_job(publishing)
    async with rescuing.transaction():
        await rescue_worker(rescuing, worker.id)
        waiting = asyncio.create_task(
            publish(publishing, claimed.worker_id, claimed.id, claimed.token, "out", stored("stale"), "text/plain")
        )
        await until_blocked(rescuing, publishing)
    with pytest.raises(LeaseLost):
        await waiting
    assert await published(publishing, claimed) == {}


async def test_two_runs_never_write_the_same_object(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    other = new_id()
    keys = {artefact_key(claimed.id, token, worker, "out") for token in (1, 2) for worker in (claimed.worker_id, other)}
    assert len(keys) == 4
    folder = f"results/{made_at(claimed.id):%y/%m/%d}/{claimed.id}"
    assert artefact_key(claimed.id, 1, other, "out") == f"{folder}/1-{other.hex[-12:]}.out"
