"""The page answers quickly, however much there is. Plan tests keep its statements; this measures all of it."""

from __future__ import annotations

import statistics
import time

import pytest

from support.api_server import Api
from support.busy_system import fill, job_with_a_life
from waybill.db import Database
from waybill.security import ADMIN


@pytest.mark.heavy
async def test_a_hundred_thousand_jobs_and_fifty_workers_are_shown_within_100_ms(api: Api, db: Database) -> None:
    async with db.hot() as connection:
        waiting = {"queued": 100_000, "scheduled": 20_000, "dead_letter": 3_000}
        await fill(connection, workers=50, running=500, succeeded=50_000, failed=500, **waiting)
        job = await job_with_a_life(connection)
    admin = api.client(key=await api.key("operators", ADMIN))
    for path in ("/ops", "/ops?tenant=acme", "/ops?state=dead_letter&kind=convert_pdf", f"/ops/jobs/{job}"):
        times = []
        for _ in range(20):
            began = time.perf_counter()
            assert (await admin.get(path)).status_code == 200
            times.append(time.perf_counter() - began)
        assert statistics.median(times) < 0.1, path
