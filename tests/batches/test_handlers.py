"""From a ZIP to results and one summary: every kind of file, on real Postgres and with a real gateway process."""

from __future__ import annotations

import hashlib
import json
import uuid
import warnings
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.batch_desk import (
    Desk,
    batch,
    counted,
    downloaded,
    files,
    made,
    notes,
    result,
    send,
    statuses,
    text,
)
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.workbooks import packed, sheet, workbook_parts
from support.zips import zipped
from waybill.storage import LocalStorage
from waybill_documents.conversion import convert
from waybill_engine import State

pytestmark = pytest.mark.timeout(120)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
RULES = [{"pattern": "invoices/*", "mapping": "pt_simon_invoice_v1"}]


def invoice(number: int = 1) -> bytes:
    return print_invoice(make_invoice(number, 3), REFERENCE)


def workbook(*rows: list[Any]) -> bytes:
    return packed(workbook_parts({"Prices": sheet(list(rows) or [["Item", "Price"], ["Nut", 1.5]])}))


async def test_each_type_becomes_what_the_gateway_reads_in_it(desk: Desk, browser: httpx.AsyncClient) -> None:
    archive = zipped(
        ("a/one.pdf", invoice(1)),
        ("a/list.xlsx", workbook()),
        ("a/note.txt", b"first\nsecond\n"),
        ("b/data.json", b'{"a": [1, 2]}'),
        ("b/feed.xml", b"<?xml version='1.0'?><feed><entry>x</entry></feed>"),
        ("b/photo.png", PNG),
        ("b/empty.txt", b""),
        ("b/old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
        ("b/broken.pdf", b"%PDF-1.7\nnothing of a PDF"),
        ("nested.zip", zipped(("inner/deep.txt", b"deep\n"), ("more.zip", zipped(("deepest.txt", b"deepest\n"))))),
    )
    new = await made(browser, archive)
    assert (await batch(browser, new))["status"] == "queued"
    await desk.work()
    found = {file["path"]: file for file in await files(browser, new)}
    assert {path: (file["type"], file["status"]) for path, file in found.items()} == {
        "a/one.pdf": ("pdf", "complete"),
        "a/list.xlsx": ("xlsx", "complete"),
        "a/note.txt": ("text", "complete"),
        "b/data.json": ("json", "complete"),
        "b/feed.xml": ("xml", "complete"),
        "b/photo.png": ("png", "failed"),
        "b/empty.txt": ("empty", "failed"),
        "b/old.doc": (found["b/old.doc"]["type"], "failed"),
        "b/broken.pdf": ("pdf", "failed"),
        "nested.zip/inner/deep.txt": ("text", "complete"),
        "nested.zip/more.zip/deepest.txt": ("text", "complete"),
    }
    assert found["b/photo.png"]["error"]["error_type"] == "PERMANENT"
    assert found["b/broken.pdf"]["error"]["error_type"] == "PARSE_ERROR"
    assert all(file["error"] and file["error"]["message"] for file in found.values() if file["status"] == "failed")
    assert all(
        file["sha256"] and file["duration_ms"] is not None for file in found.values() if file["status"] == "complete"
    )
    note = (await result(browser, new, found["a/note.txt"]["doc_id"])).json()
    assert "second" in json.dumps(note)
    assert "Nut" in (await result(browser, new, found["a/list.xlsx"]["doc_id"])).text

    ended = await batch(browser, new)
    assert (ended["status"], ended["progress"], ended["run"]) == ("complete_with_errors", 1.0, 1)
    assert counted(ended) == {"files": 11, "complete": 7, "failed": 4}
    summary = ended["summary"]
    assert summary["counts"] == {"files": 11, "complete": 7, "failed": 4}
    assert summary["by_type"]["pdf"] if isinstance(summary["by_type"], dict) else summary["by_type"]
    assert sum(each["files"] for each in summary["by_error"]) == 4
    assert {folder["name"]: folder["files"] for folder in summary["folders"]["folders"]} == {
        "a": 3,
        "b": 6,
        "nested.zip": 2,
    }
    assert len(summary["slowest"]) == 8, "what was parsed, whether or not it could be read"


async def test_bad_members_fail_alone_and_are_not_tried_again(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, zipped(("../up.txt", text()), ("/abs.txt", text()), ("good.txt", text())))
    await desk.work()
    found = {file["path"]: file for file in await files(browser, new)}
    assert [found[path]["status"] for path in ("../up.txt", "/abs.txt", "good.txt")] == ["failed", "failed", "complete"]
    assert found["../up.txt"]["error"]["error_type"] in ("PERMANENT", "PARSE_ERROR")
    ended = await batch(browser, new)
    assert ended["status"] == "complete_with_errors"
    assert ended["retryable"] is False, "nothing is stored of what was never unpacked"
    again = await browser.post(f"/api/batches/{new}/retry")
    assert (again.status_code, again.json()["code"]) == (404, "EXPIRED")
    assert (await batch(browser, new))["run"] == 1


async def test_the_same_content_is_worked_once(desk: Desk, browser: httpx.AsyncClient) -> None:
    twin = text()
    with warnings.catch_warnings(action="ignore"):  # zipfile doubts that anybody wants the same name twice
        archive = zipped(("a.txt", twin), ("b/a.txt", twin), ("a.txt", twin), ("c.txt", text()))
    new = await made(browser, archive)
    await desk.work()
    found = await files(browser, new)
    assert [file["status"] for file in found] == ["complete"] * 4
    assert [file["reused"] for file in found] == [False, True, True, False]
    assert len({file["doc_id"] for file in found}) == 4, "even where path and content are the same"
    bodies = [(await result(browser, new, file["doc_id"])).content for file in found[:3]]
    assert bodies[0] == bodies[1] == bodies[2]
    assert (await batch(browser, new))["summary"]["reused"] == 2


async def test_doc_ids_are_stable_across_batches(desk: Desk, browser: httpx.AsyncClient) -> None:
    content = text()
    ids = []
    for filler in (text(), text()):
        new = await made(browser, zipped(("x.txt", filler), ("a/b.txt", content)))
        await desk.work()
        ids.append({file["path"]: file["doc_id"] for file in await files(browser, new)}["a/b.txt"])
    assert ids[0] == ids[1]


async def test_content_of_an_earlier_batch_is_not_worked_again(
    desk: Desk, browser: httpx.AsyncClient, api: Any
) -> None:
    content = text()
    first = await made(browser, zipped(("one.txt", content)))
    await desk.work()
    await desk.value("UPDATE batch_files SET milliseconds = 12345 RETURNING 1")
    second = await made(browser, zipped(("two.txt", content), ("new.txt", text())))
    await desk.work()
    found = {file["path"]: file for file in await files(browser, second)}
    assert (found["two.txt"]["reused"], found["new.txt"]["reused"]) == (True, False)
    assert (await batch(browser, second))["summary"]["reused"] == 1

    # The copy lives on when the first batch is gone.
    assert (await browser.delete(f"/api/batches/{first}")).status_code == 204
    assert (await result(browser, second, found["two.txt"]["doc_id"])).status_code == 200

    stranger = await api.browser()
    third = await made(stranger, zipped(("two.txt", content)))
    await desk.work()
    assert [file["reused"] for file in await files(stranger, third)] == [False]


async def test_a_result_that_is_not_stored_any_more_is_made_again(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    content = text()
    await made(browser, zipped(("one.txt", content)))
    await desk.work()
    await storage.delete(await desk.value("SELECT result_key FROM batch_files"))
    second = await made(browser, zipped(("two.txt", content)))
    await desk.work()
    assert [(file["status"], file["reused"]) for file in await files(browser, second)] == [("complete", False)]


async def test_files_with_a_mapping_are_converted(desk: Desk, browser: httpx.AsyncClient) -> None:
    archive = zipped(("invoices/one.pdf", invoice(1)), ("invoices/two.pdf", invoice(2)), ("other/one.pdf", invoice(1)))
    new = await made(browser, archive, rules=RULES)
    await desk.work()
    found = {file["path"]: file for file in await files(browser, new)}
    one = found["invoices/one.pdf"]
    assert (one["status"], one["mapping"], one["review"]) == (
        "complete",
        "pt_simon_invoice_v1",
        f"/review/{one['job_id']}",
    )
    assert (found["other/one.pdf"]["mapping"], found["other/one.pdf"]["review"]) == (None, None)
    assert (await result(browser, new, one["doc_id"], "xml")).text.startswith("<?xml")
    record = (await result(browser, new, one["doc_id"])).json()
    other = (await result(browser, new, found["invoices/two.pdf"]["doc_id"])).json()
    none = await result(browser, new, found["other/one.pdf"]["doc_id"], "xml")
    assert (none.status_code, none.json()["code"]) == (409, "NOT_READY")
    assert (await browser.get(one["review"])).status_code == 200
    totals = {each["field"]: each for each in (await batch(browser, new))["summary"]["totals"]}
    asked = float(record["data"]["total"]) + float(other["data"]["total"])
    assert (float(totals["total"]["sum"]), totals["total"]["files"]) == (asked, 2)
    got = await downloaded(browser, new)
    assert {"invoices/one.pdf.xml", "invoices/one.pdf.json", "other/one.pdf.json", "SUMMARY.json"} <= got.keys()


async def test_a_zip_that_is_refused_as_a_whole_says_why(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt", "b.txt")[:-30])
    (outcome, summed) = await desk.work()
    assert (outcome.state, summed.state) == (State.FAILED, State.SUCCEEDED)
    ended = await batch(browser, new)
    assert (ended["status"], ended["counts"]["files"], ended["summary"]) == ("failed", 0, None)
    assert ended["error"]["error_type"] == "PARSE_ERROR"
    assert ended["error"]["message"]
    assert ended["retryable"] is True
    assert (await browser.get(f"/api/batches/{new}/download")).status_code == 409

    retried = await browser.post(f"/api/batches/{new}/retry")
    assert (retried.status_code, retried.json()["status"], retried.json()["run"]) == (200, "queued", 2)
    assert retried.json()["error"] is None
    await desk.work()
    ended = await batch(browser, new)
    assert (ended["status"], ended["run"], ended["error"]["error_type"]) == ("failed", 2, "PARSE_ERROR")


async def test_an_empty_zip_fails(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, zipped(("folder/", b"")))
    await desk.work()
    ended = await batch(browser, new)
    assert (ended["status"], ended["error"]["message"]) == ("failed", "The ZIP contains no files.")


async def test_failed_files_are_retried_and_nothing_else(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    twin = text()
    new = await made(
        browser, zipped(("a.txt", twin), ("again.txt", twin), ("big.txt", b"x" * 300_000), ("bad.png", PNG))
    )
    await desk.work(["process_batch"])
    keys = await desk.sql("SELECT DISTINCT source_key FROM batch_files WHERE path = 'a.txt'")
    held = b"".join([chunk async for chunk in storage.stream(keys[0][0])])
    await storage.delete(keys[0][0])
    await desk.work()
    assert await statuses(browser, new) == {
        "a.txt": "failed",
        "again.txt": "failed",
        "big.txt": "complete",
        "bad.png": "failed",
    }
    first = {file["path"]: file for file in await files(browser, new)}
    assert first["a.txt"]["error"]["code"] == "EXPIRED"
    ended = await batch(browser, new)
    assert (ended["status"], ended["retryable"]) == ("complete_with_errors", True)

    await storage.put(keys[0][0], held)
    retried = (await browser.post(f"/api/batches/{new}/retry")).json()
    assert (retried["status"], retried["run"], retried["cancellable"]) == ("processing", 2, True)
    assert counted(retried) == {"files": 4, "queued": 2, "complete": 1, "failed": 1}
    assert retried["finished_at"] is None
    outcomes = await desk.work()
    assert [outcome.state for outcome in outcomes] == [State.SUCCEEDED] * 2, "one bundle, one summary"
    found = {file["path"]: file for file in await files(browser, new)}
    assert {path: (file["status"], file["retry_count"]) for path, file in found.items()} == {
        "a.txt": ("complete", 1),
        "again.txt": ("complete", 1),
        "big.txt": ("complete", 0),
        "bad.png": ("failed", 0),
    }
    assert found["big.txt"]["job_id"] == first["big.txt"]["job_id"]
    ended = await batch(browser, new)
    assert counted(ended) == {"files": 4, "complete": 3, "failed": 1}
    assert ended["summary"]["run"] == 2
    assert ended["summary"]["counts"] == {"files": 4, "complete": 3, "failed": 1}


async def test_what_lies_in_storage_has_the_prefix_of_its_job(
    desk: Desk, browser: httpx.AsyncClient, folder: Path
) -> None:
    """Whatever a member is called, nothing is written under its name."""
    before = {path for path in folder.parent.rglob("*") if path.is_file()}
    await made(browser, zipped(("../../evil.txt", b"evil"), ("C:\\x.txt", b"x"), ("ok.txt", text()), ("CON", text())))
    await desk.work()
    new = {path for path in folder.parent.rglob("*") if path.is_file()} - before
    assert new
    assert all(path.is_relative_to(folder) for path in new)
    assert not [path for path in new if "evil" in path.name or "CON" in path.name]


async def test_every_stored_object_is_named_by_a_row(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    await made(
        browser, zipped(("a.txt", text()), ("big.txt", b"y" * 300_000), ("invoices/a.pdf", invoice())), rules=RULES
    )
    await desk.work()
    stored = {one.key async for one in storage.list()} - {"waybill-owner"}
    named = {row[0] for row in await desk.sql("SELECT storage_key FROM job_artefacts")}
    gone = {row[0] for row in await desk.sql("SELECT key FROM garbage")}
    assert stored - gone == named
    assert len(gone) == 1, "the ZIP, whose files are stored one by one now"


async def test_a_batch_is_one_family(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes(*(f"{number}.txt" for number in range(150))))
    await desk.work()
    rows = await desk.sql("SELECT id, kind, state, parent_id, cost FROM jobs ORDER BY id")
    by_kind: dict[str, list[Any]] = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
        assert row["state"] == "succeeded"
        assert row["parent_id"] == (None if row["kind"] == "summarize_run" else uuid.UUID(new))
    assert {kind: len(found) for kind, found in by_kind.items()} == {
        "summarize_run": 1,
        "process_batch": 1,
        "extract_file": 3,
    }
    sizes = await desk.value("SELECT sum(bytes) FROM batch_files")
    assert sum(row["cost"] for row in by_kind["extract_file"]) == sizes, "tenants share by bytes"


async def test_office_files_are_what_the_library_reads(
    desk: Desk, browser: httpx.AsyncClient, shared_data: Path
) -> None:
    names = sorted(path.name for path in (shared_data / "office").iterdir())
    contents = {name: (shared_data / "office" / name).read_bytes() for name in names}
    new = await made(browser, zipped(*((f"office/{name}", content) for name, content in contents.items())))
    await desk.work()
    found = {file["path"]: file for file in await files(browser, new)}
    assert {file["status"] for file in found.values()} == {"complete"}
    for name, content in contents.items():
        file = found[f"office/{name}"]
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        read = convert(shared_data / "office" / name, file["type"], mapping=None, wants="json", clock=lambda: 0.0)
        expected = json.loads(read.body)
        assert (await result(browser, new, file["doc_id"])).json() == expected, name


async def test_sending_the_same_zip_while_it_is_worked_finds_it(desk: Desk, browser: httpx.AsyncClient) -> None:
    archive = notes("a.txt")
    new = await made(browser, archive)
    await desk.work(["process_batch"])
    again = await send(browser, archive)
    assert (again.status_code, again.json()["deduped_from"]) == (200, new)
