"""The page answers quickly, however much there is. Plan tests keep its statements; this measures all of it."""

from __future__ import annotations

import statistics
import time

import pytest

from support.api_server import Api
from support.busy_system import a_thousand_kinds, fill, job_with_a_life
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
        assert statistics.quantiles(times)[0] < 0.1, (
            f"{path}: a quarter of the answers should be faster, even on a busy machine"
        )


@pytest.mark.heavy
async def test_a_thousand_kinds_cost_a_fraction_of_a_second(api: Api, db: Database) -> None:
    """An hour of them is 240,000 rows of samples, and the page is asked for every few seconds."""
    async with db.hot() as connection:
        await a_thousand_kinds(connection)
    admin = api.client(key=await api.key("operators", ADMIN))
    times = []
    for _ in range(10):
        began = time.perf_counter()
        assert (await admin.get("/ops", headers={"HX-Request": "true"})).status_code == 200
        times.append(time.perf_counter() - began)
    print(f"/ops with 1,000 kinds: {statistics.median(times) * 1e3:.0f} ms")
    assert statistics.quantiles(times)[0] < 0.4
