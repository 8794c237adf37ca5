"""Erasure: everything of a tenant or a session is gone, whatever interrupts it, and nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from support.engine import one_job, purge, running_job
from support.janitor import Janitor, document, named_keys, stored_keys
from waybill import retention
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Cancelled, Conflict, IoFailure
from waybill.failures import classify
from waybill.pipelines import brought
from waybill.security import ADMIN, keys
from waybill.storage import LocalStorage
from waybill_engine import Pace, State, caps, erasure, rates
from waybill_engine.finish import judge, settle
from waybill_engine.retry import RetryPolicy

TABLES = (
    "jobs",
    "conversions",
    "api_keys",
    "tenants",
    "caps",
    "rates",
    "idempotency_keys",
    "schedules",
    "retention_ages",
)
ERASERS = brought("erasure")


async def rows_of(hot: Connection, tenant: str) -> dict[str, int]:
    column = {"tenants": "name"}
    counts = {
        table: await hot.fetchval(f"SELECT count(*) FROM {table} WHERE {column.get(table, 'tenant')} = $1", tenant)
        for table in TABLES
    }
    return {table: count for table, count in counts.items() if count}


async def test_a_tenant_is_gone_for_good_and_others_are_not_touched(
    db: Database, hot: Connection, storage: LocalStorage
) -> None:
    for tenant in ("acme", "other"):
        for state in ("succeeded", "failed", "queued", "scheduled"):
            await document(hot, storage, state, tenant=tenant, pinned=True, unpublished=True)
        await one_job(hot, tenant=tenant)
        await keys.create(hot, tenant=tenant, name="k", permissions=[ADMIN])
        await caps.set_cap(hot, 3, tenant=tenant)
        await rates.set_rate(hot, Pace(1000, 1), tenant=tenant)
        await retention.set_ages(hot, tenant, {"documents": 3})
    purged: dict[str, Any] = {"older_than": timedelta(), "states": [State.FAILED], "tenant": "acme"}
    await hot.execute("UPDATE jobs SET pinned_at = NULL WHERE state = 'failed'")
    assert await purge(hot, **purged) == 1  # leaves a tombstone, and a file that no row ever named
    others = await rows_of(hot, "other")
    request = await erasure.request(hot, "acme")
    done = await erasure.erase(db, storage, ERASERS, request, within=60)
    assert done.finished_at is not None
    assert (done.jobs, done.files) == (4, 5)
    assert await rows_of(hot, "acme") == {}
    assert await rows_of(hot, "other") == others
    left = await stored_keys(storage)
    assert await named_keys(hot) <= left
    assert len(left) == 4 + 2 + 4, "the other's documents, results and unpublished files"
    assert await hot.fetchval("SELECT count(*) FROM job_events WHERE job_id NOT IN (SELECT id FROM jobs)") == 0
    again = await erasure.erase(db, storage, ERASERS, request, within=60)
    assert again == done


async def test_what_runs_is_asked_to_stop_and_goes_when_it_has(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    worker, lease = await running_job(hot, tenant="acme")
    await document(hot, storage)
    request = await erasure.request(hot, "acme")
    done = await erasure.erase(db, storage, ERASERS, request, within=60)
    assert (done.finished_at, done.jobs) == (None, 1)
    assert await hot.fetchval("SELECT cancel_requested_at IS NOT NULL FROM jobs WHERE id = $1", lease.id)
    assert await erasure.request(hot, "acme") == request, "the same goes on"
    outcome = judge(lease, classify(Cancelled()), RetryPolicy())
    await settle(hot, worker.id, [(lease.id, lease.token, outcome)])
    assert (await cleaner.clean())["erasures"] == {"jobs": 1, "finished": 1}
    assert await rows_of(hot, "acme") == {}


async def test_a_hold_stops_an_erasure_also_one_that_is_under_way(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    await document(hot, storage)
    request = await erasure.request(hot, "acme")
    await retention.hold(hot, "acme")
    with pytest.raises(Conflict, match="legal hold"):
        await erasure.request(hot, "acme")
    with pytest.raises(Conflict, match="legal hold"):
        await erasure.erase(db, storage, ERASERS, request, within=60)
    assert (await cleaner.run())["erasures"].error is not None
    assert len(await stored_keys(storage)) == 3
    await retention.release(hot, "acme")
    assert (await cleaner.clean())["erasures"]["finished"] == 1
    assert await stored_keys(storage) == set()


class Broken(LocalStorage):
    async def delete_many(self, keys: Sequence[str]) -> None:
        raise IoFailure("The storage cannot be reached.")


async def test_it_is_not_finished_before_the_files_are_gone(
    db: Database, hot: Connection, storage: LocalStorage, cleaner: Janitor
) -> None:
    await document(hot, storage, owner="session:1")
    await document(hot, storage, owner="session:2")
    request = await erasure.request(hot, "acme", owner="session:1")
    done = await erasure.erase(db, Broken(storage._root), ERASERS, request, within=60)
    assert (done.finished_at, done.jobs, done.files) == (None, 1, 3)
    assert (await cleaner.clean())["erasures"] == {"finished": 1}
    assert await stored_keys(storage) == await named_keys(hot)
    assert [row["owner"] for row in await hot.fetch("SELECT owner FROM conversions")] == ["session:2"]
