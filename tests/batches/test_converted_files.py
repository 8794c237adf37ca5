"""Files that another pipeline converts: what people do with them there shows in their batch, and in its summary."""

from __future__ import annotations

import asyncio
import json
import uuid
from decimal import Decimal
from typing import Any

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import Desk, batch, counted, downloaded, files, made, result, statuses, text
from support.clock import Clock
from support.engine import Connect, until_blocked
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.janitor import DAY
from support.zips import zipped
from waybill.changes import Event, events
from waybill.db import Database
from waybill.storage import LocalStorage
from waybill_batches.listener import hear
from waybill_batches.repository import batches as rows
from waybill_batches.retention import RETENTION

pytestmark = pytest.mark.timeout(120)

RULES = [{"pattern": "*.pdf", "mapping": "pt_simon_invoice_v1"}]


def invoice(number: int = 1) -> bytes:
    return print_invoice(make_invoice(number, 3), REFERENCE)


@pytest.fixture
def doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has to look at every result."""
    monkeypatch.setenv("WAYBILL_REVIEW_BELOW", "100")


async def one_in_doubt(desk: Desk, client: httpx.AsyncClient, *more: tuple[str, bytes]) -> tuple[str, dict[str, Any]]:
    """A batch with an invoice that waits for a person."""
    new = await made(client, zipped(("one.pdf", invoice(1)), *more), rules=RULES)
    await desk.work()
    (file,) = [file for file in await files(client, new) if file["path"] == "one.pdf"]
    assert file["status"] == "needs_review"
    return new, file


def total(summary: dict[str, Any], field: str = "total") -> Decimal | None:
    found = [each["sum"] for each in summary["totals"] if each["field"] == field]
    return Decimal(found[0]) if found else None


async def test_a_doubtful_result_is_kept_back_until_it_is_approved(
    desk: Desk, browser: httpx.AsyncClient, doubting: None, clock: Clock
) -> None:
    new, file = await one_in_doubt(desk, browser, ("a.txt", text()))
    ended = await batch(browser, new)
    assert (ended["status"], counted(ended)) == ("complete", {"files": 2, "complete": 1, "needs_review": 1})
    assert total(ended["summary"]) is None, "what nobody has checked is in no total"
    for form in ("json", "xml"):
        answer = await result(browser, new, file["doc_id"], form)
        assert (answer.status_code, answer.json()["code"]) == (409, "NOT_READY")
        assert answer.json()["review"] == f"/review/{file['job_id']}"
    assert "one.pdf.json" not in await downloaded(browser, new)

    await clock.forward(3600)
    assert (await browser.post(f"/api/jobs/{file['job_id']}/approve", json={"base": 0})).status_code == 200
    assert (await statuses(browser, new))["one.pdf"] == "complete"
    await desk.work_on()
    after = await batch(browser, new)
    assert counted(after) == {"files": 2, "complete": 2}
    record = (await result(browser, new, file["doc_id"])).json()
    assert total(after["summary"]) == Decimal(record["data"]["total"])
    assert after["finished_at"] == ended["finished_at"], "a check is not the end of the batch"
    assert abs(after["summary"]["duration_ms"] - ended["summary"]["duration_ms"]) < 60_000
    (checked,) = [each for each in await files(browser, new) if each["path"] == "one.pdf"]
    assert checked["duration_ms"] == file["duration_ms"], "nor is it work"


async def test_a_correction_is_the_result_and_counts_in_the_totals(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, zipped(("one.pdf", invoice(1)), ("two.pdf", invoice(2))), rules=RULES)
    await desk.work()
    one, two = await files(browser, new)
    before = (await result(browser, new, one["doc_id"])).json()["data"]
    change = {"base": 0, "changes": [{"path": "total", "value": "1.234,00"}], "accept": True}
    answer = await browser.post(f"/api/jobs/{one['job_id']}/revisions", json=change)
    assert answer.status_code == 201, answer.text
    await desk.work_on()
    corrected = (await result(browser, new, one["doc_id"])).json()["data"]
    assert Decimal(corrected["total"]) == 1234 != Decimal(before["total"])
    other = (await result(browser, new, two["doc_id"])).json()["data"]
    summary = (await batch(browser, new))["summary"]
    assert total(summary) == 1234 + Decimal(other["total"])
    assert (await result(browser, new, one["doc_id"], "xml")).status_code == 200


async def test_many_checks_cost_one_summary(desk: Desk, browser: httpx.AsyncClient, doubting: None) -> None:
    new = await made(browser, zipped(*((f"{number}.pdf", invoice(number)) for number in range(1, 5))), rules=RULES)
    await desk.work()
    for file in await files(browser, new):
        assert (await browser.post(f"/api/jobs/{file['job_id']}/approve", json={"base": 0})).status_code == 200
    outcomes = await desk.work_on()
    assert len(outcomes) == 1
    assert counted(await batch(browser, new)) == {"files": 4, "complete": 4}


async def test_the_same_invoice_in_a_later_batch_is_copied_and_has_a_review_of_its_own(
    desk: Desk, browser: httpx.AsyncClient, connect: Connect
) -> None:
    first = await made(browser, zipped(("one.pdf", invoice(1))), rules=RULES)
    await desk.work()
    (old,) = await files(browser, first)
    change = {"base": 0, "changes": [{"path": "total", "value": "1.234,00"}], "accept": True}
    assert (await browser.post(f"/api/jobs/{old['job_id']}/revisions", json=change)).status_code == 201

    later = await made(browser, zipped(("again.pdf", invoice(1)), ("a.txt", text())), rules=RULES)
    await desk.work()
    new = next(file for file in await files(browser, later) if file["path"] == "again.pdf")
    assert (old["reused"], new["reused"]) == (False, True)
    assert new["job_id"] != old["job_id"]
    record = (await result(browser, later, new["doc_id"])).json()
    assert Decimal(record["data"]["total"]) != 1234, "a correction belongs to the file that was corrected"
    assert total((await batch(browser, later))["summary"]) == Decimal(record["data"]["total"])
    assert (await result(browser, later, new["doc_id"], "xml")).content.startswith(b"<?xml")
    assert (await browser.get(new["review"])).status_code == 200

    # Another release may read it better, so its results are not taken for ours.
    connection = await connect()
    await connection.execute("UPDATE conversions SET converted_by = '0.0.1'")
    third = await made(browser, zipped(("third.pdf", invoice(1))), rules=RULES)
    await desk.work()
    assert [file["reused"] for file in await files(browser, third)] == [False]


async def test_others_hear_of_the_end_once_and_then_of_changes(
    desk: Desk, browser: httpx.AsyncClient, doubting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    async def write_it_down(_connection: object, event: Event) -> None:
        if event.name.startswith("batch."):
            heard.append((event.name, dict(event.data)))

    monkeypatch.setattr(events, "listeners", lambda: (hear, write_it_down))
    _, file = await one_in_doubt(desk, browser)
    assert (await browser.post(f"/api/jobs/{file['job_id']}/approve", json={"base": 0})).status_code == 200
    await desk.work_on()
    assert [name for name, _ in heard] == ["batch.received", "batch.finished", "batch.changed"]
    assert {(data["status"], data["complete"], data["run"]) for _, data in heard[1:]} == {("complete", 1, 1)}


async def test_a_check_while_the_summary_is_made_is_not_lost(
    desk: Desk, browser: httpx.AsyncClient, doubting: None, connect: Connect, db: Database
) -> None:
    """Whether the summary has read the file before or after, what is written in the end is right."""
    new, file = await one_in_doubt(desk, browser)
    batch_id, job_id = uuid.UUID(new), uuid.UUID(file["job_id"])
    summing, checking, looking = await connect(), await connect(), await connect()
    owner = await desk.value("SELECT owner FROM batches")
    told = Event("convert.completed", "public", owner, job_id, {"pages": 1})

    # The summary is being made: it has the batch, and has read the figures.
    await desk.sql("UPDATE batches SET status = 'processing', finished_at = NULL")
    transaction = summing.transaction()
    await transaction.start()
    await rows.lock(summing, batch_id)
    await rows.end(summing, batch_id, "complete", {"files": 1, "needs_review": 1}, {})  # type: ignore[arg-type]

    async def check() -> None:
        async with checking.transaction():
            await hear(checking, told)

    task = asyncio.create_task(check())
    await until_blocked(looking, checking)
    await transaction.commit()
    await task
    await desk.work_on()
    assert counted(await batch(browser, new)) == {"files": 1, "complete": 1}


async def test_a_conversion_that_is_retried_by_itself_counts_again(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    new = await made(browser, zipped(("one.pdf", invoice(1)), ("two.pdf", invoice(2))), rules=RULES)
    await desk.work(["process_batch"])
    key = await desk.value("SELECT source_key FROM batch_files WHERE path = 'one.pdf'")
    held = b"".join([chunk async for chunk in storage.stream(key)])
    await storage.put(key, b"%PDF-1.7\n" + b"x" * (len(held) - 9))
    await desk.work_on()
    one, _ = await files(browser, new)
    assert one["status"] == "failed"
    assert (await batch(browser, new))["status"] == "complete_with_errors"

    await storage.put(key, held)
    answer = await browser.post(f"/api/jobs/{one['job_id']}/retry")
    assert answer.status_code == 200, answer.text
    await desk.work_on()
    ended = await batch(browser, new)
    assert (ended["status"], counted(ended)) == ("complete", {"files": 2, "complete": 2})
    assert (await files(browser, new))[0]["error"] is None


async def test_a_retried_conversion_reads_the_same_document(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    """And when the first conversion is deleted, the document stays: it is the batch's."""
    new = await made(browser, zipped(("one.pdf", invoice(1)), ("b.txt", text())), rules=RULES)
    await desk.work(["process_batch"])
    key = await desk.value("SELECT source_key FROM batch_files WHERE path = 'one.pdf'")
    held = b"".join([chunk async for chunk in storage.stream(key)])
    await storage.put(key, b"%PDF-1.7\n" + b"x" * (len(held) - 9))
    await desk.work_on()
    first = (await files(browser, new))[0]["job_id"]
    await storage.put(key, held)
    assert (await browser.post(f"/api/batches/{new}/retry")).status_code == 200
    assert (await browser.delete(f"/api/jobs/{first}")).status_code == 204
    await desk.work_on()
    ended = await batch(browser, new)
    assert (ended["status"], counted(ended)) == ("complete", {"files": 2, "complete": 2})
    assert not await desk.sql("SELECT FROM garbage WHERE key = $1", key)


async def test_a_conversion_that_its_owner_deletes_leaves_no_dangling_result(
    desk: Desk, browser: httpx.AsyncClient
) -> None:
    new = await made(browser, zipped(("one.pdf", invoice(1)), ("two.pdf", invoice(2))), rules=RULES)
    await desk.work()
    one, _ = await files(browser, new)
    assert (await browser.delete(f"/api/jobs/{one['job_id']}")).status_code == 204
    await desk.sql("DELETE FROM garbage RETURNING key")
    answer = await result(browser, new, one["doc_id"])
    assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")
    assert (await files(browser, new))[0]["status"] == "expired"
    got = await downloaded(browser, new)
    assert "one.pdf.json" not in got
    assert b"one.pdf" in got["ERRORS.csv"]


async def test_conversions_that_expire_take_their_batch_along(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, zipped(("one.pdf", invoice(1)), ("two.pdf", invoice(2))), rules=RULES)
    await desk.work()
    for number, file in enumerate(await files(browser, new), start=1):
        async with desk.database.hot() as connection, connection.transaction():
            owner = await rows.owner(connection, uuid.UUID(new))
            await hear(connection, Event("convert.expired", "public", owner, uuid.UUID(file["job_id"])))
        await desk.work_on()
        ended = await batch(browser, new)
        assert ended["counts"]["expired"] == number
        assert ended["status"] == ("complete" if number == 1 else "expired")
    answer = await browser.get(f"/api/batches/{new}/download")
    assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")


async def test_a_document_stays_as_long_as_somebody_has_to_look_at_it(
    desk: Desk, browser: httpx.AsyncClient, doubting: None, clock: Clock
) -> None:
    _, file = await one_in_doubt(desk, browser)
    await clock.forward(40 * DAY)
    (files_rule,) = [rule for rule in RETENTION.rules if rule.name == "batch_files"]
    jobs = [row["id"] for row in await desk.sql("SELECT id FROM jobs")]
    async with desk.database.hot() as connection:
        assert list(await files_rule.due(connection, jobs, 7.0)) == []
    assert (await browser.post(f"/api/jobs/{file['job_id']}/approve", json={"base": 0})).status_code == 200
    async with desk.database.hot() as connection:
        assert len(await files_rule.due(connection, jobs, 7.0)) == 1
    assert (await browser.post(f"/api/jobs/{file['job_id']}/pin")).status_code == 200
    async with desk.database.hot() as connection:
        assert list(await files_rule.due(connection, jobs, 7.0)) == []


async def test_a_mapping_applies_to_what_it_can_read(desk: Desk, browser: httpx.AsyncClient) -> None:
    """First match wins, whatever the case; "" is none; what no mapping reads is extracted."""
    rules = [
        {"pattern": "skip/*", "mapping": ""},
        {"pattern": "*.PDF", "mapping": "pt_simon_invoice_v1"},
        {"pattern": "*.pdf", "mapping": "auto"},
    ]
    archive = zipped(
        ("skip/a.pdf", invoice(1)), ("in/b.pdf", invoice(2)), ("c.json.pdf", b'{"a": 1}'), ("d.txt", text())
    )
    new = await made(browser, archive, rules=rules)
    await desk.work()
    found = {file["path"]: (file["mapping"], file["status"]) for file in await files(browser, new)}
    assert found == {
        "skip/a.pdf": (None, "complete"),
        "in/b.pdf": ("pt_simon_invoice_v1", "complete"),
        "c.json.pdf": (None, "complete"),
        "d.txt": (None, "complete"),
    }
    assert (await batch(browser, new))["rules"] == rules


async def test_conversions_of_a_batch_are_in_no_list_and_belong_to_its_owner(
    desk: Desk, browser: httpx.AsyncClient, api: Api
) -> None:
    new = await made(browser, zipped(("one.pdf", invoice(1))), rules=RULES)
    await desk.work()
    (file,) = await files(browser, new)
    assert (await browser.get("/api/jobs")).json()["jobs"] == []
    assert (await browser.get(f"/api/jobs/{file['job_id']}")).status_code == 200
    stranger = await api.browser()
    assert (await stranger.get(f"/api/jobs/{file['job_id']}")).status_code == 404
    assert (await stranger.get(f"/review/{file['job_id']}")).status_code == 404
    assert json.dumps(file)
