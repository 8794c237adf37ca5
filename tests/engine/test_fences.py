"""A stale owner changes nothing, though the job is running again: under the next token, or even under the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clock import Clock
from support.engine import NO_SETTLE, TTL, Connect, row, running_job, start_worker, take, take_isolated
from waybill.db.database import Connection
from waybill.errors import LeaseLost
from waybill.storage import LocalStorage
from waybill_engine import ClaimedJob
from waybill_engine.artefacts import artefact_key, publish
from waybill_engine.finish import released, settle, succeed, succeeded_by
from waybill_engine.lease import Progress, WorkerInfo, fence, write_progress
from waybill_engine.rescue import rescue


async def taken_over(connect: Connect, clock: Clock) -> tuple[WorkerInfo, ClaimedJob]:
    """A worker whose job another one runs by now, and its stale lease."""
    connection = await connect()
    stale, claimed = await running_job(connection)
    await clock.forward(TTL + 1)
    await rescue(connection, settle_time=NO_SETTLE)
    other = await start_worker(connection)
    (again,) = await take_isolated(connection, other)
    assert (again.id, again.token) == (claimed.id, claimed.token + 1)
    return stale, claimed


async def test_a_stale_owner_can_neither_finish_nor_release_nor_fail_it(connect: Connect, clock: Clock) -> None:
    stale, claimed = await taken_over(connect, clock)
    connection = await connect()
    before = await row(connection, claimed.id)

    assert await succeed(connection, stale.id, [(claimed.id, claimed.token)]) == set()
    assert await settle(connection, stale.id, [(claimed.id, claimed.token, released("mine"))]) == {}

    assert await row(connection, claimed.id) == before


async def test_a_stale_owners_progress_is_not_written(connect: Connect, clock: Clock) -> None:
    _, claimed = await taken_over(connect, clock)
    connection = await connect()
    before = await row(connection, claimed.id)

    assert (
        await write_progress(connection, [Progress(claimed.id, claimed.token, claimed.worker_id, 0.5, "stale")])
        == set()
    )

    assert await row(connection, claimed.id) == before


async def test_a_stale_owner_does_not_pass_the_fence(connect: Connect, clock: Clock) -> None:
    _, claimed = await taken_over(connect, clock)
    with pytest.raises(LeaseLost):
        await fence(await connect(), claimed.worker_id, claimed.id, claimed.token)


# A row that is set back to before a claim: an asynchronous standby was promoted, or a backup restored.

FORGET_CLAIM = "UPDATE jobs SET state = 'queued', lease_owner = NULL, lease_token = lease_token - 1 WHERE id = $1"


async def claimed_twice(connection: Connection) -> tuple[ClaimedJob, ClaimedJob]:
    """The same job claimed by two workers under the same token. The second one is right."""
    _, lost = await running_job(connection)
    await connection.execute(FORGET_CLAIM, lost.id)
    (claimed,) = await take(connection, await start_worker(connection))
    assert (claimed.id, claimed.token) == (lost.id, lost.token)
    assert claimed.worker_id != lost.worker_id
    return lost, claimed


async def test_after_a_lossy_failover_only_the_new_owner_ends_the_job(hot: Connection) -> None:
    lost, claimed = await claimed_twice(hot)
    before = await row(hot, lost.id)

    assert await succeed(hot, lost.worker_id, [(lost.id, lost.token)]) == set()
    assert await settle(hot, lost.worker_id, [(lost.id, lost.token, released("mine"))]) == {}
    assert await write_progress(hot, [Progress(lost.id, lost.token, lost.worker_id, 0.5, "stale")]) == set()
    with pytest.raises(LeaseLost):
        await fence(hot, lost.worker_id, lost.id, lost.token)

    assert await row(hot, lost.id) == before
    assert await succeed(hot, claimed.worker_id, [(claimed.id, claimed.token)]) == {claimed.id}


async def test_after_a_lossy_failover_only_the_new_owners_file_is_the_result(hot: Connection, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    lost, claimed = await claimed_twice(hot)
    files = {
        one.worker_id: await storage.put(artefact_key(one.id, one.token, one.worker_id, "out"), text)
        for one, text in ((claimed, b"right"), (lost, b"stale"))
    }

    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "out", files[claimed.worker_id], "text/plain")
    with pytest.raises(LeaseLost):
        await publish(hot, lost.worker_id, lost.id, lost.token, "out", files[lost.worker_id], "text/plain")

    key = await hot.fetchval("SELECT storage_key FROM job_artefacts WHERE job_id = $1", claimed.id)
    assert b"".join([chunk async for chunk in storage.stream(key)]) == b"right"


async def test_after_a_lossy_failover_a_lost_commit_is_not_mistaken_for_the_new_owners(hot: Connection) -> None:
    lost, claimed = await claimed_twice(hot)
    await succeed(hot, claimed.worker_id, [(claimed.id, claimed.token)])
    async with hot.transaction():
        assert await succeeded_by(hot, lost.worker_id, [(lost.id, lost.token)]) == set()
        assert await succeeded_by(hot, claimed.worker_id, [(claimed.id, claimed.token)]) == {claimed.id}
