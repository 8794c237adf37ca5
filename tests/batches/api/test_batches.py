"""Batches over HTTP: lists, pages, one of them, and what can be done with it."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import Desk, batch, counted, files, made, notes, statuses, text
from support.clock import Clock
from support.engine import Connect, start_worker, take
from support.zips import zipped
from waybill import retention
from waybill.db import Database
from waybill.errors import Cancelled
from waybill.failures import classify
from waybill.storage import LocalStorage
from waybill_engine import State
from waybill_engine.finish import judge, settle
from waybill_engine.retry import RetryPolicy
from waybill_engine.testing import run_inline

pytestmark = pytest.mark.timeout(120)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def test_lists_come_newest_first_and_page_by_page(desk: Desk, browser: httpx.AsyncClient) -> None:
    made_ones = [await made(browser, notes(f"{number}.txt")) for number in range(5)]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = (await browser.get("/api/batches", params={"limit": 2, **cursor})).json()
        assert answer["active_count"] == 5
        found += [one["id"] for one in answer["batches"]]
        if len(found) == 2:
            made_later = await made(browser, notes("later.txt"))
            await browser.delete(f"/api/batches/{made_later}")
            await browser.post(f"/api/batches/{made_later}/cancel")
        if answer["next"] is None:
            break
        cursor = {"cursor": answer["next"]}
    assert found == made_ones[::-1]
    await desk.work()
    done = (await browser.get("/api/batches", params={"status": ["complete", "failed"]})).json()
    assert ([one["id"] for one in done["batches"]], done["active_count"]) == (made_ones[::-1], 0)
    assert all(one["summary"] is None for one in done["batches"]), "lists are short"
    cancelled = (await browser.get("/api/batches", params={"status": "cancelled"})).json()
    assert [one["id"] for one in cancelled["batches"]] == [made_later]
    for wrong in ({"status": "done"}, {"limit": 0}, {"limit": 501}, {"cursor": "x"}, {"cursor": "1" * 201}):
        assert (await browser.get("/api/batches", params=wrong)).status_code in (400, 422), wrong


async def test_files_can_be_filtered(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(
        browser,
        zipped(
            ("b/100%_a.txt", text()), ("b/a.png", PNG), ("c/1000_a.txt", text()), ("d.json", b"{}"), ("E.TXT", text())
        ),
    )
    await desk.work()

    async def paths(**wanted: Any) -> list[str]:
        answer = await browser.get(f"/api/batches/{new}/files", params=wanted)
        assert answer.status_code == 200, answer.text
        return [file["path"] for file in answer.json()["files"]]

    assert await paths() == ["b/a.png", "b/100%_a.txt", "c/1000_a.txt", "d.json", "E.TXT"], "what failed comes first"
    assert await paths(order="archive") == ["b/100%_a.txt", "b/a.png", "c/1000_a.txt", "d.json", "E.TXT"]
    assert await paths(status="failed") == ["b/a.png"]
    assert await paths(status=["complete", "failed"], type="text") == ["b/100%_a.txt", "c/1000_a.txt", "E.TXT"]
    assert await paths(q="0%_a") == ["b/100%_a.txt"], "wildcards are plain characters"
    assert await paths(q="e.txt") == ["E.TXT"]
    assert await paths(q="a", status="failed", order="archive") == ["b/a.png"]
    assert await paths(q="\\") == []
    for wrong in ({"status": "x"}, {"limit": 501}, {"cursor": "x"}, {"order": "x"}, {"q": "\0"}, {"type": "\0"}):
        answer = await browser.get(f"/api/batches/{new}/files", params=wrong)
        assert answer.status_code in (400, 422), wrong


@pytest.mark.parametrize("order", ["archive", "errors_first"])
async def test_no_file_is_missed_or_named_twice(desk: Desk, browser: httpx.AsyncClient, order: str) -> None:
    members = [
        (f"{number:03}.txt" if number % 7 else f"{number:03}.png", text() if number % 7 else PNG)
        for number in range(150)
    ]
    new = await made(browser, zipped(*members))
    await desk.work(["process_batch"])
    waiting = await files(browser, new, limit=17, order=order)
    assert sorted(file["path"] for file in waiting) == [name for name, _ in members]
    await desk.work()
    done = await files(browser, new, limit=17, order=order)
    assert sorted(file["path"] for file in done) == [name for name, _ in members]
    only = await files(browser, new, limit=1, order=order, status="failed")
    assert len(only) == 22


async def test_statuses_may_change_while_somebody_pages(desk: Desk, browser: httpx.AsyncClient) -> None:
    """In the order of the ZIP every file is seen once, whatever happens meanwhile."""
    names = [f"{number:03}.txt" for number in range(200)]
    new = await made(browser, notes(*names))
    await desk.work(["process_batch"])

    async def page() -> list[str]:
        return [file["path"] for file in await files(browser, new, limit=9, order="archive")]

    seen, _ = await asyncio.gather(page(), desk.work())
    assert seen == names


async def test_a_running_bundle_shows_as_processing(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes(*(f"{number}.txt" for number in range(70))))
    await desk.work(["process_batch"])
    await desk.sql(
        "UPDATE jobs SET state = 'running', lease_owner = gen_random_uuid(), attempts = 2 WHERE id ="
        " (SELECT job_id FROM batch_files ORDER BY number LIMIT 1)"
    )
    now = await batch(browser, new)
    assert (now["status"], counted(now)) == ("processing", {"files": 70, "queued": 6, "processing": 64})
    running = await files(browser, new, limit=10, order="errors_first", status="processing")
    assert (len(running), {file["status"] for file in running}) == (64, {"processing"})
    assert {file["retry_count"] for file in running} == {2}
    queued = await files(browser, new, status="queued", order="errors_first")
    assert [file["path"] for file in queued] == [f"{number}.txt" for number in range(64, 70)]
    everything = await files(browser, new, limit=7, order="errors_first")
    assert len({file["doc_id"] for file in everything}) == len(everything) == 70


async def test_a_batch_is_cancelled_at_each_stage(desk: Desk, browser: httpx.AsyncClient) -> None:
    for stage in (None, "process_batch", "extract_file"):
        new = await made(browser, notes("a.txt", "b.txt"))
        if stage is not None:
            await desk.work(["process_batch"])
        if stage == "extract_file":
            await desk.work(["extract_file"])
        answer = await browser.post(f"/api/batches/{new}/cancel")
        assert answer.status_code == 200, answer.text
        cancelled = answer.json()
        assert (cancelled["status"], cancelled["cancellable"], cancelled["retryable"]) == ("cancelled", False, True)
        assert cancelled["finished_at"]
        expected = {
            None: {},
            "process_batch": {"files": 2, "cancelled": 2},
            "extract_file": {"files": 2, "complete": 2},
        }[stage]
        assert counted(cancelled) == expected
        assert await desk.work() == [], "nothing is left to do"
        assert (await browser.post(f"/api/batches/{new}/cancel")).status_code == 409
        again = await browser.post(f"/api/batches/{new}/retry")
        assert again.status_code == 200, again.text
        await desk.work()
        ended = await batch(browser, new)
        assert (ended["status"], counted(ended), ended["run"]) == ("complete", {"files": 2, "complete": 2}, 2)
        assert ended["summary"]["run"] == 2
        assert (await browser.delete(f"/api/batches/{new}")).status_code == 204


async def test_what_was_done_before_a_cancel_stays(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, zipped(("a.txt", text()), ("big.txt", b"x" * 300_000)))
    await desk.work(["process_batch"])
    await run_inline(desk.database, desk.storage, await desk.value("SELECT job_id FROM batch_files WHERE number = 0"))
    await browser.post(f"/api/batches/{new}/cancel")
    assert await statuses(browser, new) == {"a.txt": "complete", "big.txt": "cancelled"}
    now = await batch(browser, new)
    assert (now["status"], now["downloadable"]) == ("cancelled", True)
    await browser.post(f"/api/batches/{new}/retry")
    await desk.work()
    ended = await batch(browser, new)
    assert (ended["status"], counted(ended)) == ("complete", {"files": 2, "complete": 2})


async def test_only_what_ended_is_retried_and_deleted(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"))
    for method, path in (("POST", "/retry"), ("DELETE", "")):
        answer = await browser.request(method, f"/api/batches/{new}{path}")
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    await desk.work()
    answer = await browser.post(f"/api/batches/{new}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")


async def test_two_retries_at_once_make_one_run(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"))
    await browser.post(f"/api/batches/{new}/cancel")
    answers = await asyncio.gather(*(browser.post(f"/api/batches/{new}/retry") for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [200, 409, 409, 409]
    await desk.work()
    assert (await batch(browser, new))["run"] == 2


async def test_a_summary_that_could_not_be_made_can_be_tried_again(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"))
    await desk.work(["process_batch", "extract_file"])
    await desk.sql("ALTER TABLE batch_files RENAME COLUMN amounts TO not_there")
    for _ in range(4):
        await desk.work_on()
    await desk.sql("ALTER TABLE batch_files RENAME COLUMN not_there TO amounts")
    failed = await batch(browser, new)
    assert (failed["status"], counted(failed), failed["retryable"]) == ("failed", {"files": 1, "complete": 1}, True)
    assert (await browser.post(f"/api/batches/{new}/retry")).status_code == 200
    (outcome,) = await desk.work()
    assert outcome.state is State.SUCCEEDED
    ended = await batch(browser, new)
    assert (ended["status"], ended["summary"]["counts"]) == ("complete", {"files": 1, "complete": 1})


async def test_a_deleted_batch_leaves_nothing(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage, db: Database
) -> None:
    other = await made(browser, notes("other.txt"))
    new = await made(
        browser,
        zipped(("a.txt", text()), ("b.png", PNG), ("big.txt", b"z" * 300_000), *((f"{n}", text()) for n in range(80))),
    )
    await desk.work()
    cancelled = await made(browser, notes("never.txt"))
    await browser.post(f"/api/batches/{cancelled}/cancel")
    for one in (new, cancelled):
        await browser.post(f"/api/batches/{one}/retry")
        await desk.work()
        assert (await browser.delete(f"/api/batches/{one}")).status_code == 204
        assert (await browser.get(f"/api/batches/{one}")).status_code == 404
    left = await desk.sql("SELECT DISTINCT payload ->> 'batch' AS batch FROM all_jobs")
    assert [row["batch"] for row in left] == [other]
    assert await desk.value("SELECT count(*) FROM batch_files WHERE batch_id <> $1", uuid.UUID(other)) == 0
    named = {row[0] for row in await desk.sql("SELECT storage_key FROM job_artefacts")}
    garbage = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    stored = {one.key async for one in storage.list()} - {"waybill-owner"}
    assert stored - garbage == named
    events = await desk.sql("SELECT detail FROM audit_events WHERE action = 'batch.deleted'")
    assert len(events) == 2


async def test_a_legal_hold_keeps_a_batch(desk: Desk, api: Api) -> None:
    person = api.client(await api.key("acme"))
    new = await made(person, notes("a.txt"))
    await desk.work()
    async with desk.database.hot() as connection:
        await retention.hold(connection, "acme")
    answer = await person.delete(f"/api/batches/{new}")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert counted(await batch(person, new)) == {"files": 1, "complete": 1}
    assert len(await files(person, new)) == 1


async def test_progress_is_the_share_that_has_ended(desk: Desk, browser: httpx.AsyncClient, clock: Clock) -> None:
    new = await made(browser, zipped(("a.png", PNG), ("b.txt", text()), ("c.txt", text()), ("big.txt", b"x" * 300_000)))
    await desk.work(["process_batch"])
    assert (await batch(browser, new))["progress"] == 0.25
    await desk.work()
    assert (await batch(browser, new))["progress"] == 1.0


async def test_the_stream_tells_of_changes(desk: Desk, browser: httpx.AsyncClient, api: Api) -> None:
    other = await api.browser()
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def follow() -> None:
        async with browser.stream("GET", "/api/batches/stream") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    events.put_nowait(json.loads(line.removeprefix("data:")))

    following = asyncio.create_task(follow())
    try:
        async with asyncio.timeout(60):
            assert (await events.get())["batches"] == []
            foreign = await made(other, notes("foreign.txt"))
            new = await made(browser, notes("a.txt"))
            seen: list[str] = []
            working = asyncio.create_task(desk.work())
            while not seen or seen[-1] != "complete":
                for one in (await events.get())["batches"]:
                    assert one["id"] == new != foreign
                    assert one["summary"] is None
                    seen.append(one["status"])
            await working
            assert seen[0] in ("queued", "processing")
    finally:
        following.cancel()
    for wrong in ("x", "1" * 19, "-1"):
        answer = await browser.get("/api/batches/stream", headers={"Last-Event-ID": wrong})
        assert answer.status_code == 422, wrong
    head = await browser.head("/api/batches/stream")
    assert (head.status_code, head.content) == (200, b"")


async def test_the_stream_tells_of_everything_that_changed(
    desk: Desk, browser: httpx.AsyncClient, db: Database
) -> None:
    """Also when more has changed than one event carries."""
    new = await made(browser, notes("a.txt"))
    await desk.work()
    await desk.sql(
        "INSERT INTO batches (id, tenant, owner, name, source_name, bytes, sha256, rules, fingerprint, source_key,"
        " run_job, all_runs, status, source_deleted_at)"
        " SELECT gen_random_uuid(), tenant, owner, name, source_name, bytes, sha256, rules, number::text, '', run_job,"
        " all_runs, status, now() FROM batches, generate_series(1, 150) AS number"
    )
    await desk.sql("UPDATE batches SET changed = pg_current_xact_id(), name = 'touched' WHERE id <> $1", uuid.UUID(new))
    seen: set[str] = set()
    async with (
        asyncio.timeout(30),
        browser.stream("GET", "/api/batches/stream", headers={"Last-Event-ID": "1"}) as stream,
    ):
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                seen |= {one["id"] for one in json.loads(line.removeprefix("data:"))["batches"]}
                if len(seen) == 151:
                    break
    assert len(seen) == 151


async def test_a_batch_is_not_deleted_while_one_of_its_jobs_still_stops(
    desk: Desk, browser: httpx.AsyncClient, connect: Connect
) -> None:
    """Who deleted it then could not find that job any more."""
    new = await made(browser, notes("a.txt"))
    await desk.work(["process_batch"])
    hot = await connect()
    worker = await start_worker(hot, queues=["batches"], kinds=["extract_file"])
    (claimed,) = await take(hot, worker)
    assert (await browser.post(f"/api/batches/{new}/cancel")).json()["status"] == "cancelled"
    answer = await browser.delete(f"/api/batches/{new}")
    assert (answer.status_code, answer.json()["key"]) == (409, "batches.delete_stopping")
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, classify(Cancelled()), RetryPolicy()))])
    assert counted(await batch(browser, new)) == {"files": 1, "cancelled": 1}
    assert (await browser.delete(f"/api/batches/{new}")).status_code == 204
    assert await desk.value("SELECT count(*) FROM all_jobs") == 0
