"""A conversion follows its job, whoever moves it; jobs of other kinds pay nothing."""

from __future__ import annotations

import asyncio
import uuid

from convert.conftest import put
from support.api_server import Converter, pdf
from support.clock import Clock
from support.engine import NO_SETTLE, Connect, one_job
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound
from waybill.security import Principal
from waybill_convert.repository import conversions, listing, retired_mappings
from waybill_convert.service import Conversions
from waybill_convert.status import Status
from waybill_engine import control
from waybill_engine.rescue import rescue


async def test_every_state_has_its_word(conversions: Conversions, me: Principal, hot: Connection) -> None:
    job = (await put(conversions, me)).job.id
    worker = await hot.fetchval(
        "INSERT INTO workers (id, name, host, pid, version, queues, kinds, concurrency, state)"
        " VALUES (gen_random_uuid(), 'w', 'w', 1, '1', '{}', '{}', 1, 'active') RETURNING id"
    )
    for state, status in {
        "scheduled": Status.QUEUED,
        "running": Status.PROCESSING,
        "queued": Status.QUEUED,
        "failed": Status.FAILED,
        "dead_letter": Status.FAILED,
        "cancelled": Status.CANCELLED,
        "succeeded": Status.COMPLETE,
    }.items():
        await hot.execute(
            "UPDATE jobs SET state = $2, lease_owner = CASE WHEN $2 = 'running' THEN $3::uuid END WHERE id = $1",
            job,
            state,
            worker,
        )
        view = await conversions.get(me.owner, job)
        assert (view.status, view.dead_letter) == (status, state == "dead_letter"), state
        assert (await conversions.listing(me.owner)).counts[status] == 1


async def test_owners_are_told_and_other_kinds_are_silent(
    conversions: Conversions, me: Principal, hot: Connection, connect: Connect
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = await connect()
    await listener.add_listener("waybill_changes", lambda *news: heard.put_nowait(str(news[-1])))
    job = (await put(conversions, me)).job.id
    assert await asyncio.wait_for(heard.get(), 5) == me.owner
    other = await one_job(hot)
    await control.cancel(hot, other)
    await control.cancel(hot, job)
    assert await asyncio.wait_for(heard.get(), 5) == me.owner
    await hot.execute("SELECT pg_notify('waybill_changes', 'end')")
    assert await asyncio.wait_for(heard.get(), 5) == "end"


async def test_a_rescue_is_seen(
    conversions: Conversions, me: Principal, converter: Converter, hot: Connection, clock: Clock
) -> None:
    job = (await put(conversions, me)).job.id
    await converter.take()
    assert (await conversions.get(me.owner, job)).status is Status.PROCESSING
    await clock.forward(120)
    await rescue(hot, settle_time=NO_SETTLE)
    assert (await conversions.get(me.owner, job)).status is Status.QUEUED


async def test_what_an_owner_lists_is_read_from_one_index(db: Database, me: Principal, hot: Connection) -> None:
    """A page costs the same with fifty conversions and with a hundred thousand, whatever the statistics say."""
    await hot.execute(
        """
        INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status,
                                 listed_at)
        SELECT gen_random_uuid(), 'public', CASE WHEN n % 2 = 0 THEN $1 ELSE 'session:other' END, n || '.pdf', n, n,
               'm', 'k', 'complete', now() - n * interval '1 second'
          FROM generate_series(1, 20000) AS n
        """,
        me.owner,
    )
    last = uuid.UUID(int=2**128 - 1)
    async with db.hot() as connection:
        for _ in range(2):
            for statement, arguments, index in [
                (listing._PAGE, (me.owner, listing._NEWEST, last, 50), "conversions_listed"),
                (listing._CHANGED, (me.owner, "10", uuid.UUID(int=0), 50), "conversions_changed"),
                (conversions._SAME, (me.owner, "a", "m", 1, ["queued"], None, None), "conversions_same"),
                (
                    listing._PAGE_FILTERED,
                    (me.owner, listing._NEWEST, last, 50, ["queued"], None, None),
                    "conversions_by_status",
                ),
            ]:
                plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *arguments))
                assert index in plan, plan
                assert "Seq Scan" not in plan, plan
            unnamed = await connection.fetch(f"EXPLAIN {retired_mappings._FIND}", 30.0, "", "", 50)
            assert "conversions_version" in "\n".join(row[0] for row in unnamed), unnamed
            await hot.execute("ANALYZE conversions")


async def test_a_running_document_has_its_time_left(
    conversions: Conversions, me: Principal, converter: Converter, hot: Connection
) -> None:
    for _ in range(6):
        await put(conversions, me)
    await converter.finish_all()
    await hot.execute("UPDATE jobs SET started_at = finished_at - interval '20 seconds'")
    job = (await put(conversions, me)).job.id
    assert (await conversions.get(me.owner, job)).remaining_seconds is None, "it waits"
    await converter.take()
    conversions.outlook._estimates_until = 0
    left = (await conversions.get(me.owner, job)).remaining_seconds
    assert left is not None
    assert 15 <= left <= 20


async def test_of_all_who_try_again_at_once_one_does(conversions: Conversions, me: Principal, hot: Connection) -> None:
    """Three failed jobs for one document are retried while it is uploaded: it is converted once."""
    document = pdf()
    for _ in range(5):
        jobs = []
        for _ in range(3):
            jobs.append((await put(conversions, me, document)).job.id)
            await conversions.cancel(me.owner, jobs[-1])
        ends = await asyncio.gather(
            *(conversions.retry(me.owner, job) for job in jobs), put(conversions, me, document), return_exceptions=True
        )
        assert not [end for end in ends if isinstance(end, BaseException) and not isinstance(end, Conflict)]
        active = await hot.fetch("SELECT id FROM jobs WHERE state = 'queued'")
        assert len(active) == 1
        assert {uuid.UUID(end.detail["job_id"]) for end in ends if isinstance(end, Conflict) and end.detail} <= {
            row["id"] for row in active
        }
        await hot.execute("DELETE FROM jobs")


async def test_two_who_delete_at_once(conversions: Conversions, me: Principal) -> None:
    job = (await put(conversions, me)).job.id
    ends = await asyncio.gather(*(conversions.delete(me.owner, job) for _ in range(4)), return_exceptions=True)
    assert all(end is None or isinstance(end, NotFound) for end in ends), ends
    assert None in ends
