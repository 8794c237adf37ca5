"""How long what is kept, and that nothing of a batch stays behind: ages, holds, shelf, purge, orphans, erasure."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import Desk, batch, counted, downloaded, files, made, notes, result, statuses, text
from support.clock import Clock
from support.engine import Connect, purge, start_worker, take
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.janitor import DAY, Janitor, janitor
from support.zips import zipped
from waybill import retention
from waybill.db import Database
from waybill.errors import Cancelled
from waybill.failures import classify
from waybill.pipelines import brought
from waybill.storage import LocalStorage
from waybill_engine import State, erasure, shelf
from waybill_engine.finish import judge, settle
from waybill_engine.retry import RetryPolicy

pytestmark = pytest.mark.timeout(120)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
RULES = [{"pattern": "*.pdf", "mapping": "pt_simon_invoice_v1"}]
ERASERS = brought("erasure")


def invoice(number: int = 1) -> bytes:
    return print_invoice(make_invoice(number, 3), REFERENCE)


def mixed() -> bytes:
    return zipped(
        ("one.pdf", invoice()), ("a.txt", text()), ("b.png", PNG), ("big.txt", text() + b"z" * 300_000), ("../x", b"x")
    )


@pytest.fixture
def cleaner(db: Database, storage: LocalStorage) -> Janitor:
    return janitor(db, storage)


async def stored(storage: LocalStorage) -> set[str]:
    return {one.key async for one in storage.list()} - {"waybill-owner"}


async def rows_of(desk: Desk, owner: str) -> dict[str, int]:
    """How many rows somebody has left."""
    counts = {
        table: await desk.value(f"SELECT count(*) FROM {table} WHERE owner = $1", owner)
        for table in ("batches", "batch_files", "all_jobs", "conversions")
    }
    return {table: number for table, number in counts.items() if number}


async def shelve(desk: Desk) -> int:
    """Put every ended job on the shelf."""
    total = 0
    async with desk.database.hot() as connection:
        while True:
            page = await shelf.page(connection, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), 10_000)
            if not (shelved := await shelf.shelve(connection, page, 0.0)):
                return total
            total += shelved


async def ended(desk: Desk, client: httpx.AsyncClient, archive: bytes | None = None) -> str:
    new = await made(client, mixed() if archive is None else archive, rules=RULES)
    await desk.work()
    return new


async def test_files_go_first_then_results_and_at_last_everything(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage, clock: Clock, cleaner: Janitor
) -> None:
    new = await ended(desk, browser)
    assert (await batch(browser, new))["retryable"] is False, "neither a picture nor a bad member is stored"
    await cleaner.clean()
    assert counted(await batch(browser, new)) == {"files": 5, "complete": 3, "failed": 2}
    sources = {row[0] for row in await desk.sql("SELECT DISTINCT source_key FROM batch_files WHERE source_key <> ''")}
    assert sources <= await stored(storage)

    await clock.forward(8 * DAY)
    done = await cleaner.clean()
    assert done["batch_files"]["batch_files"] == len(sources)
    assert not sources & await stored(storage)
    now = await batch(browser, new)
    assert (now["status"], now["retryable"]) == ("complete_with_errors", False)
    assert len([name for name in await downloaded(browser, new) if name.endswith(".json")]) == 4
    assert (await browser.post(f"/api/batches/{new}/retry")).json()["code"] == "EXPIRED"

    await clock.forward(24 * DAY)
    await cleaner.clean()
    await desk.work_on()
    now = await batch(browser, new)
    assert now["status"] == "expired"
    assert (now["counts"]["complete"], now["counts"]["files"]) == (0, 5)
    assert now["counts"]["failed"] == 2
    (text_file,) = [file for file in await files(browser, new) if file["path"] == "a.txt"]
    answer = await result(browser, new, text_file["doc_id"])
    assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")

    await clock.forward(400 * DAY)
    await cleaner.clean()
    await cleaner.clean()
    assert (await browser.get(f"/api/batches/{new}")).status_code == 404
    assert await stored(storage) == set()
    for table in ("batches", "batch_files", "all_jobs"):
        assert await desk.value(f"SELECT count(*) FROM {table}") == 0, table


async def test_a_zip_that_could_not_be_unpacked_is_kept_as_long_as_files_are(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage, clock: Clock, cleaner: Janitor
) -> None:
    new = await ended(desk, browser, notes("a.txt")[:-30])
    await clock.forward(6 * DAY)
    await cleaner.clean()
    assert len(await stored(storage)) == 1
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert await stored(storage) == set()
    now = await batch(browser, new)
    assert (now["status"], now["retryable"]) == ("failed", False)


async def test_a_batch_under_legal_hold_keeps_everything(
    desk: Desk, api: Api, storage: LocalStorage, clock: Clock, cleaner: Janitor
) -> None:
    person = api.client(await api.key("acme"))
    new = await ended(desk, person)
    failed = await ended(desk, person, notes("a.txt")[:-30])
    await cleaner.clean()
    async with desk.database.hot() as connection:
        await retention.hold(connection, "acme")
    before = await stored(storage)
    await clock.forward(400 * DAY)
    await cleaner.clean()
    assert await stored(storage) == before
    assert counted(await batch(person, new)) == {"files": 5, "complete": 3, "failed": 2}
    assert (await batch(person, failed))["status"] == "failed"


async def test_a_tenant_may_have_its_own_ages(
    desk: Desk, api: Api, clock: Clock, cleaner: Janitor, storage: LocalStorage
) -> None:
    person = api.client(await api.key("acme"))
    new = await ended(desk, person, notes("a.txt"))
    async with desk.database.hot() as connection:
        await retention.set_ages(connection, "acme", {"batch_files": 100, "batch_results": 1})
    await clock.forward(2 * DAY)
    await cleaner.clean()
    assert (await batch(person, new))["status"] == "expired"
    assert len(await stored(storage)) == 1, "its file"


async def test_ages_count_from_the_last_run(
    desk: Desk, browser: httpx.AsyncClient, clock: Clock, cleaner: Janitor
) -> None:
    new = await made(browser, notes("a.txt"))
    await browser.post(f"/api/batches/{new}/cancel")
    await clock.forward(6 * DAY)
    await browser.post(f"/api/batches/{new}/retry")
    await desk.work()
    await clock.forward(25 * DAY)
    await cleaner.clean()
    assert (await batch(browser, new))["status"] == "complete"
    # The first run's job is as old as a job may get; the batch is not.
    await clock.forward(62 * DAY)
    await cleaner.clean()
    assert (await batch(browser, new))["status"] == "expired"


async def test_shelved_jobs_are_missed_by_nobody(desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage) -> None:
    new = await ended(desk, browser)
    before, listed = await batch(browser, new), await files(browser, new)
    assert await shelve(desk) == await desk.value("SELECT count(*) FROM all_jobs") > 3
    assert await batch(browser, new) == before
    assert await files(browser, new) == listed
    assert await files(browser, new, order="errors_first", limit=2)

    # A check of a shelved conversion, and a retry of what failed.
    change = {"base": 0, "changes": [{"path": "total", "value": "1.234,00"}], "accept": True}
    (one,) = [file for file in listed if file["path"] == "one.pdf"]
    assert (await browser.post(f"/api/jobs/{one['job_id']}/revisions", json=change)).status_code == 201
    await desk.work_on()
    await desk.sql("UPDATE batch_files SET status = 'failed', result_key = NULL, extractor = NULL WHERE path = 'a.txt'")
    await shelve(desk)
    assert (await browser.post(f"/api/batches/{new}/retry")).status_code == 200
    await desk.work_on()
    after = await batch(browser, new)
    assert (after["run"], counted(after)) == (2, {"files": 5, "complete": 3, "failed": 2})

    await shelve(desk)
    assert (await browser.delete(f"/api/batches/{new}")).status_code == 204
    assert await desk.value("SELECT count(*) FROM all_jobs") == 0
    garbage = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    assert await stored(storage) <= garbage


async def test_a_batch_goes_with_its_jobs_when_they_are_purged(
    desk: Desk, browser: httpx.AsyncClient, connect: Connect, clock: Clock, storage: LocalStorage
) -> None:
    new = await ended(desk, browser)
    await clock.forward(DAY)
    wanted: dict[str, Any] = {"older_than": timedelta(hours=1), "states": list(State)}
    hot = await connect()
    ended_states = [State.SUCCEEDED, State.FAILED, State.CANCELLED, State.DEAD_LETTER]
    wanted["states"] = ended_states
    assert await purge(hot, **wanted, kind="extract_file") == 2
    assert {path: status for path, status in (await statuses(browser, new)).items() if status != "failed"} == {
        "one.pdf": "complete",
        "a.txt": "expired",
        "big.txt": "expired",
    }
    assert counted(await batch(browser, new)) == {"files": 5, "complete": 1, "expired": 2, "failed": 2}
    assert await purge(hot, **wanted) == 3
    assert (await browser.get(f"/api/batches/{new}")).status_code == 404
    assert await desk.value("SELECT count(*) FROM batch_files") == 0
    garbage = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    assert await stored(storage) <= garbage


async def test_a_purge_spares_a_batch_that_is_being_retried(
    desk: Desk, browser: httpx.AsyncClient, connect: Connect, clock: Clock
) -> None:
    new = await made(browser, notes("a.txt"))
    await browser.post(f"/api/batches/{new}/cancel")
    await clock.forward(DAY)
    await browser.post(f"/api/batches/{new}/retry")
    assert await purge(await connect(), older_than=timedelta(hours=1), states=[State.CANCELLED]) == 2
    await desk.work()
    assert counted(await batch(browser, new)) == {"files": 1, "complete": 1}
    assert (await browser.delete(f"/api/batches/{new}")).status_code == 204
    assert await desk.value("SELECT count(*) FROM all_jobs") == 0


async def test_orphans_of_batches_go_and_what_is_needed_stays(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage, clock: Clock, cleaner: Janitor
) -> None:
    waiting = await made(browser, notes("waiting.txt"))
    new = await ended(desk, browser, notes("a.txt"))
    before = await stored(storage)
    lost = f"batches/26/01/02/{uuid.uuid4()}.zip"
    await storage.put(lost, b"PK")
    half = await desk.value("SELECT source_key FROM batch_files LIMIT 1")
    unpublished = half.replace("files-000000", "files-000009")
    assert unpublished != half
    await storage.put(unpublished, b"half")
    await clock.forward(2 * DAY)
    await cleaner.clean()
    left = await stored(storage)
    assert not {lost, unpublished} & left
    assert left == {key for key in before if key in left}
    assert (await statuses(browser, new)) == {"a.txt": "complete"}
    await desk.work()
    assert (await batch(browser, waiting))["status"] == "complete"


async def test_a_zip_that_is_missing_fails_its_batch_with_a_reason(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    new = await made(browser, notes("a.txt"))
    (key,) = await stored(storage)
    await storage.delete(key)
    await desk.work_on()
    now = await batch(browser, new)
    assert (now["status"], now["error"]["code"], now["error"]["error_type"]) == ("failed", "EXPIRED", "PERMANENT")
    assert "no longer stored" in now["error"]["message"]


async def test_a_result_that_is_missing_is_said_and_left_out(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    new = await made(browser, zipped(("a.txt", text()), ("big.txt", text() + b"z" * 300_000)))
    await desk.work()
    await storage.delete(await desk.value("SELECT result_key FROM batch_files WHERE path = 'a.txt'"))
    first, _ = await files(browser, new)
    for method in ("GET",):
        answer = await browser.request(method, f"/api/batches/{new}/files/{first['doc_id']}/result")
        assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")
    got = await downloaded(browser, new)
    assert list(got) == ["SUMMARY.json", "big.txt.json", "ERRORS.csv"]
    assert b"a.txt,expired" in got["ERRORS.csv"]


async def test_a_tenant_is_forgotten_with_its_batches(
    desk: Desk, api: Api, storage: LocalStorage, connect: Connect
) -> None:
    person, other = api.client(await api.key("acme")), api.client(await api.key("other"))
    kept = await ended(desk, other)
    before = await stored(storage)
    await ended(desk, person)
    await ended(desk, person, notes("a.txt")[:-30])
    cancelled = await made(person, notes("c.txt"))
    await person.post(f"/api/batches/{cancelled}/cancel")
    await shelve(desk)
    await made(person, notes("waits.txt"))
    half = await made(person, mixed(), rules=RULES)
    await desk.work(["process_batch"])
    assert half
    request = await erasure.request(await connect(), "acme")
    done = await erasure.erase(desk.database, storage, ERASERS, request, within=60)
    assert done.finished_at is not None
    for table in ("batches", "all_jobs", "conversions"):
        assert await desk.value(f"SELECT count(*) FROM {table} WHERE tenant = 'acme'") == 0, table
    assert await desk.value("SELECT count(*) FROM batch_files WHERE owner <> 'tenant:other'") == 0
    garbage = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    assert await stored(storage) - garbage <= before
    assert await desk.work() == []
    assert counted(await batch(other, kept)) == {"files": 5, "complete": 3, "failed": 2}


async def test_a_session_is_forgotten_with_its_batches(desk: Desk, api: Api, storage: LocalStorage) -> None:
    leaving, staying = await api.browser(), await api.browser()
    kept = await ended(desk, staying)
    before = await stored(storage)
    await ended(desk, leaving)
    waiting = await made(leaving, notes("waits.txt"))
    await made(leaving, mixed(), rules=RULES)
    await desk.work(["process_batch"])
    owner = await desk.value("SELECT owner FROM batches WHERE id = $1", uuid.UUID(waiting))
    answer = await leaving.delete("/api/session")
    assert (answer.status_code, answer.json()["finished"]) == (200, True)
    assert await rows_of(desk, owner) == {}
    garbage = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    assert await stored(storage) - garbage <= before
    assert counted(await batch(staying, kept)) == {"files": 5, "complete": 3, "failed": 2}


@pytest.mark.parametrize("kind", ["process_batch", "extract_file"])
async def test_what_runs_for_a_session_goes_when_it_has_stopped(
    desk: Desk, api: Api, storage: LocalStorage, connect: Connect, cleaner: Janitor, kind: str
) -> None:
    leaving = await api.browser()
    new = await made(leaving, notes("a.txt"))
    if kind == "extract_file":
        await desk.work(["process_batch"])
    owner = await desk.value("SELECT owner FROM batches WHERE id = $1", uuid.UUID(new))
    hot = await connect()
    worker = await start_worker(hot, queues=["batches"], kinds=[kind])
    (claimed,) = await take(hot, worker)
    answer = await leaving.delete("/api/session")
    assert (answer.status_code, answer.json()["finished"]) == (202, False)
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, classify(Cancelled()), RetryPolicy()))])
    await cleaner.clean()
    assert await rows_of(desk, owner) == {}
    assert await stored(storage) == set()


async def test_who_signs_in_takes_batches_along(desk: Desk, api: Api, storage: LocalStorage) -> None:
    person = await api.browser()
    done = await ended(desk, person)
    await shelve(desk)
    half = await made(person, mixed(), rules=RULES)
    await desk.work(["process_batch"])
    waiting = await made(person, notes("waits.txt"))
    was = await desk.value("SELECT owner FROM batches LIMIT 1")
    key = await api.key("acme")
    assert (await person.post("/session", json={"key": key})).status_code == 200
    colleague = api.client(key)
    for client in (person, colleague):
        listed = (await client.get("/api/batches")).json()["batches"]
        assert [one["id"] for one in listed] == [waiting, half, done]
    assert await rows_of(desk, was) == {}
    await desk.work_on()
    for one in (done, half, waiting):
        assert (await batch(colleague, one))["status"] in ("complete", "complete_with_errors")
    (file,) = [file for file in await files(colleague, half) if file["path"] == "one.pdf"]
    assert (await colleague.get(f"/api/jobs/{file['job_id']}")).status_code == 200
    assert await rows_of(desk, was) == {}, "and nothing that was made since"


async def test_who_signs_in_while_a_zip_is_unpacked_takes_its_files_along(
    desk: Desk, api: Api, connect: Connect
) -> None:
    person = await api.browser()
    new = await made(person, mixed(), rules=RULES)
    was = await desk.value("SELECT owner FROM batches LIMIT 1")
    hot = await connect()
    # The unpacking has begun and cannot write yet.
    async with hot.transaction():
        await hot.execute("LOCK TABLE job_artefacts IN EXCLUSIVE MODE")
        working = asyncio.create_task(desk.work(["process_batch"]))
        looking = await connect()
        async with asyncio.timeout(60):
            while not await looking.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            ):
                await asyncio.sleep(0.01)
        key = await api.key("acme")
        assert (await person.post("/session", json={"key": key})).status_code == 200
    await working
    await desk.work_on()
    assert await rows_of(desk, was) == {}
    (file,) = [file for file in await files(person, new) if file["path"] == "one.pdf"]
    assert (await person.get(f"/review/{file['job_id']}")).status_code == 200
