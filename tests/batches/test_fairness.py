"""A big batch does not keep another tenant waiting: its jobs are small, and tenants share by their work."""

from __future__ import annotations

import random
import uuid

import httpx
import pytest

from support.api_server import Api, uploaded
from support.batch_desk import Desk, made, notes, text
from support.engine import Connect, refresh, start_worker
from support.zips import zipped
from waybill_engine.claim import claim
from waybill_engine.fair_share import FairShare
from waybill_engine.finish import succeed

pytestmark = pytest.mark.timeout(120)

KINDS = ("process_batch", "extract_file", "summarize_run", "convert_pdf")


@pytest.mark.parametrize("what", ["a document", "a batch"])
async def test_a_single_upload_during_a_big_batch_is_claimed_soon(
    desk: Desk, api: Api, connect: Connect, what: str
) -> None:
    big, small = api.client(await api.key("big")), api.client(await api.key("small"))
    await made(
        big,
        zipped(
            *((f"{n}.txt", text()) for n in range(1500)),
            *((f"large-{n}.txt", text() + bytes([65 + n]) * 300_000) for n in range(20)),
        ),
    )
    await desk.work(["process_batch"])
    assert await desk.value("SELECT count(*) FROM jobs WHERE kind = 'extract_file' AND state = 'queued'") > 40
    hot = await connect()
    worker = await start_worker(hot, queues=["batches", "convert"], kinds=KINDS)

    fair_share = FairShare(None, random.Random(0))  # a worker's, which remembers who got how much

    async def claims(number: int) -> list[str]:
        tenants = []
        for _ in range(number):
            await refresh(hot, fair_share, worker.queues, worker.kinds)
            (claimed,) = await claim(hot, worker.id, fair_share, 1)
            tenants.append(claimed.tenant)
            await hot.execute("DELETE FROM batch_files WHERE job_id = $1", claimed.id)
            async with hot.transaction():
                await succeed(hot, worker.id, [(claimed.id, claimed.token)])
        return tenants

    assert await claims(10) == ["big"] * 10
    await (uploaded(small) if what == "a document" else made(small, notes("one.txt")))
    assert "small" in await claims(3)


async def test_one_job_is_no_more_than_a_second_of_work(desk: Desk, browser: httpx.AsyncClient) -> None:
    """Whoever waits for a slot waits for one bundle at most."""
    new = await made(browser, zipped(*((f"{n}.txt", text() + b"x" * 30_000) for n in range(200))))
    await desk.work(["process_batch"])
    rows = await desk.sql(
        "SELECT count(*) AS files, sum(bytes) AS bytes FROM batch_files WHERE batch_id = $1 GROUP BY job_id",
        uuid.UUID(new),
    )
    assert sum(row["files"] for row in rows) == 200
    assert max(row["files"] for row in rows) <= 64
    assert max(row["bytes"] for row in rows) <= 2**20
