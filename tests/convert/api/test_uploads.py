"""Uploading: one job per document, whatever is sent, however often and however badly."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api, Converter, pdf, upload, uploaded
from support.workbooks import packed, sheet, workbook_parts
from waybill.db import Database
from waybill.errors import Code, GatewayRejected
from waybill.failures import Failure, classify
from waybill.files import FileType
from waybill.web.languages import LANGUAGES
from waybill_convert.repository import durations
from waybill_engine import breaker_control

_MB = 1024 * 1024


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def jobs_in(db: Database) -> int:
    async with db.hot() as connection:
        return int(await connection.fetchval("SELECT count(*) FROM jobs"))


def assert_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code


async def test_a_pdf_becomes_a_job_and_a_file(api: Api, db: Database, folder: Path) -> None:
    content = pdf()
    answer = await upload(api.client(), content, mapping="pt_simon_invoice_v1")
    assert answer.status_code == 201
    job = answer.json()["job"]
    assert answer.headers["location"] == job["links"]["self"]
    assert answer.json()["deduped_from"] is None
    assert (job["status"], job["original_name"], job["bytes"]) == ("queued", "invoice.pdf", len(content))
    async with db.hot() as connection:
        row = await connection.fetchrow("SELECT * FROM conversions")
        payload = await connection.fetchval("SELECT payload FROM jobs")
    assert row is not None
    assert (folder / row["upload_key"]).read_bytes() == content
    assert row["upload_key"] in payload
    assert row["status"] == "queued"


async def test_the_mapping_defaults_and_fields_may_follow_the_file(api: Api, folder: Path) -> None:
    client = api.client()
    assert (await upload(client)).json()["job"]["mapping"] == "pt_simon_invoice_v1"
    files: Any = [
        ("file", ("a.pdf", pdf(), "application/pdf")),
        ("mapping", (None, b"en16931_cii")),
        ("force", (None, b"true")),
    ]
    answer = await client.post("/api/upload", files=files)
    assert answer.status_code == 201, answer.text
    assert answer.json()["job"]["mapping"] == "en16931_cii"


E_INVOICE = b"<?xml version='1.0'?><Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'/>"


@pytest.mark.parametrize("kind", ["application/xml", "text/xml", "application/octet-stream"])
@pytest.mark.parametrize("padding", [0, 5000])
async def test_an_e_invoice_may_be_xml(api: Api, folder: Path, kind: str, padding: int) -> None:
    content = E_INVOICE + b" " * padding
    parts: Any = [("file", ("a.XML", content, kind)), ("mapping", (None, b"en16931_ubl"))]
    answer = await api.client().post("/api/upload", files=parts)
    assert answer.status_code == 201, answer.text
    (file,) = stored(folder)
    assert file.read_bytes() == content


@pytest.mark.parametrize("first", [True, False])
async def test_xml_for_a_mapping_that_reads_pages_is_refused(api: Api, db: Database, folder: Path, first: bool) -> None:
    parts: Any = [("file", ("a.xml", E_INVOICE, "text/xml")), ("mapping", (None, b"pt_simon_invoice_v1"))]
    answer = await api.client().post("/api/upload", files=parts[::-1] if first else parts)
    assert_problem(answer, 415, "NOT_PDF")
    assert "en16931_ubl" in answer.json()["detail"]
    assert stored(folder) == []
    assert await jobs_in(db) == 0


async def test_a_name_does_not_make_xml(api: Api, folder: Path) -> None:
    for content in (b"plain text", b"", b"\0<a/>", b"{}", b"<!DOCTYPE html><html></html>"):
        parts: Any = [("file", ("a.xml", content, "text/xml")), ("mapping", (None, b"en16931_ubl"))]
        assert_problem(await api.client().post("/api/upload", files=parts), 415, "NOT_PDF")
    assert stored(folder) == []


BOOK = packed(workbook_parts({"Blatt 1": sheet([["Summe", 37.05]])}))
XLSX, CSV = FileType.XLSX.media_type, b"Summe;37,05\r\n"
MINE = {"format": 1, "name": "mine_v1", "title": "Mine", "xml": {"root": {"name": "I"}}}


@pytest.fixture
async def with_mine(serve: Serve, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with a mapping that is not a shipped one, so that it may read sheets."""
    (tmp_path / "mine_v1.json").write_text(json.dumps(MINE))
    async with serve(mappings_dir=str(tmp_path)) as running:
        yield running


def large_book() -> bytes:
    """A workbook whose parts are not all named near its beginning, as other programs than Excel write it."""
    parts = workbook_parts({"Blatt 1": sheet([["Summe", 37.05]])})
    return packed({"docProps/thumbnail.jpeg": random.Random(1).randbytes(_MB), **parts})


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.xlsx", BOOK, XLSX),
        ("a.XLSM", large_book(), "application/octet-stream"),
        ("a.csv", CSV, "text/csv"),
        ("a.csv", "Summe;37,05\r\n".encode("utf-16"), "application/vnd.ms-excel"),
        ("a.csv", "Straße,Größe\r\n".encode("latin-1") * 9000, "text/plain"),
        ("a.csv", BOOK, "text/csv"),
        ("a.CSV", b"Summe\r\n3705\r\n", "text/csv"),
        ("a.csv", b"4711\n", ""),
    ],
)
async def test_a_workbook_or_csv_file_is_taken_for_a_mapping_that_may_read_it(
    with_mine: Api, folder: Path, name: str, content: bytes, kind: str
) -> None:
    parts: Any = [("file", (name, content, kind)), ("mapping", (None, b"mine_v1"))]
    answer = await with_mine.client().post("/api/upload", files=parts)
    assert answer.status_code == 201, answer.text
    (file,) = stored(folder)
    assert file.read_bytes() == content


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("mapping", "key"),
    [
        ("pt_simon_invoice_v1", "sheet_needs_mapping"),
        ("en16931_ubl", "sheet_needs_mapping"),
        ("auto", "sheet_needs_name"),
    ],
)
async def test_a_workbook_for_a_mapping_that_reads_none_is_refused(
    api: Api, db: Database, folder: Path, mapping: str, key: str, first: bool
) -> None:
    for name, content in (("a.xlsx", BOOK), ("a.csv", CSV)):
        parts: Any = [("file", (name, content, "")), ("mapping", (None, mapping.encode()))]
        for language in LANGUAGES.values():
            answer = await api.client(headers={"Accept-Language": language.code}).post(
                "/api/upload", files=parts[::-1] if first else parts
            )
            assert_problem(answer, 415, "NOT_PDF")
            assert answer.json()["key"] == f"convert.upload.{key}"
    assert stored(folder) == []
    assert await jobs_in(db) == 0


async def test_a_name_does_not_make_a_workbook_or_csv(with_mine: Api, db: Database, folder: Path) -> None:
    letter = packed({"[Content_Types].xml": b"", "word/document.xml": b""})
    noise = random.Random(1).randbytes(_MB)
    contents = {
        "a Word document": letter,
        "a large ZIP of anything": packed({"xl/anything.bin": noise}),
        "a ZIP of anything": packed({"a.txt": b"a;b"}),
        "a workbook of before 2007": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000),
        "noise": noise,
        "JSON": json.dumps({"a": [1, 2] * 4000}).encode(),
        "a page": b"\xef\xbb\xbf <!DOCTYPE html><html>a, b; c</html>",
        "nothing": b"",
    }
    for what, content in contents.items():
        for name in ("a.xlsx", "a.xlsm", "a.csv"):
            parts: Any = [("file", (name, content, "")), ("mapping", (None, b"mine_v1"))]
            answer = await with_mine.client().post("/api/upload", files=parts)
            assert (answer.status_code, answer.json().get("key")) == (415, "convert.upload.no_sheet"), what
    for name, content in (
        ("a.pdf", BOOK),
        ("a.pdf", CSV),
        ("a.xml", BOOK),
        ("a.txt", CSV),
        ("a.xls", BOOK),
        ("a.xlsx", b"one column"),
        ("csv", CSV),
    ):
        parts = [("file", (name, content, "")), ("mapping", (None, b"mine_v1"))]
        assert_problem(await with_mine.client().post("/api/upload", files=parts), 415, "NOT_PDF")
    assert stored(folder) == []
    assert await jobs_in(db) == 0


async def test_what_a_mapping_in_the_folder_can_never_read_is_refused(
    serve: Serve, db: Database, folder: Path, tmp_path: Path
) -> None:
    invoices = {"format": 1, "name": "invoices_v1", "title": "Invoices", "embedded": {"output": "ubl"}}
    for each in (MINE, invoices):
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    async with serve(mappings_dir=str(tmp_path)) as api:
        for name, content, mapping, key in (
            ("a.xml", E_INVOICE, "mine_v1", "xml_needs_mapping"),
            ("a.xlsx", BOOK, "invoices_v1", "sheet_needs_mapping"),
            ("a.csv", CSV, "invoices_v1", "sheet_needs_mapping"),
        ):
            parts: Any = [("file", (name, content, "")), ("mapping", (None, mapping.encode()))]
            answer = await api.client().post("/api/upload", files=parts)
            assert_problem(answer, 415, "NOT_PDF")
            assert answer.json()["key"] == f"convert.upload.{key}"
        assert stored(folder) == []
        assert await jobs_in(db) == 0
        parts = [("file", ("a.xml", E_INVOICE, "")), ("mapping", (None, b"invoices_v1"))]
        assert (await api.client().post("/api/upload", files=parts)).status_code == 201


async def test_a_failed_document_is_not_retried_by_a_mapping_that_can_never_read_it(
    with_mine: Api, converter: Converter
) -> None:
    client = await with_mine.browser()
    for name, content, mapping, other, key in (
        ("a.xml", E_INVOICE, "en16931_ubl", "mine_v1", "xml_needs_mapping"),
        ("a.csv", b"one\n", "mine_v1", "en16931_ubl", "sheet_needs_mapping"),
        ("a.xlsx", BOOK, "mine_v1", "auto", "sheet_needs_name"),
        ("a.xlsx", large_book(), "mine_v1", "oyo_v1", "sheet_needs_mapping"),
    ):
        parts: Any = [("file", (name, content, "")), ("mapping", (None, mapping.encode()))]
        job = (await client.post("/api/upload", files=parts)).json()["job"]["id"]
        for claimed in await converter.take():
            await converter.fail(claimed, classify(GatewayRejected()))
        refused = await client.post(f"/api/jobs/{job}/retry", params={"mapping": other})
        assert_problem(refused, 415, "NOT_PDF")
        assert refused.json()["key"] == f"convert.upload.{key}"
        again = await client.post(f"/api/jobs/{job}/retry", params={"mapping": mapping})
        assert (again.status_code, again.json()["status"]) == (200, "queued"), again.text
        await converter.take()


async def test_an_upload_says_what_may_be_lost_of_an_e_invoice(api: Api, db: Database, folder: Path) -> None:
    client, content = await api.browser(), pdf()
    plain = (await upload(client, content, mapping="en16931_ubl")).json()
    assert plain["job"]["loss"] is None
    for loss in ("strict", "lenient"):
        made = (await upload(client, content, mapping="en16931_ubl", loss=loss)).json()
        assert (made["deduped_from"], made["job"]["loss"]) == (None, loss), "it is another question"
        again = (await upload(client, content, mapping="en16931_ubl", loss=f" {loss.upper()} ")).json()
        assert (again["deduped_from"], again["job"]["loss"]) == (made["job"]["id"], loss)
    same = (await upload(client, content, mapping="en16931_ubl", loss="")).json()
    assert same["deduped_from"] == plain["job"]["id"]
    assert (await upload(client, content, mapping="auto", loss="lenient")).json()["job"]["loss"] == "lenient"
    async with db.hot() as connection:
        payloads = [json.loads(row["payload"]) for row in await connection.fetch("SELECT payload::text FROM jobs")]
    assert sorted(str(payload["loss"]) for payload in payloads) == ["None", "lenient", "lenient", "strict"]
    before = stored(folder)
    for mapping, loss, key in (
        ("en16931_ubl", "some", "convert.upload.loss"),
        ("pt_simon_invoice_v1", "strict", "convert.upload.loss_needs_e_invoices"),
    ):
        refused = await upload(client, mapping=mapping, loss=loss)
        assert (refused.status_code, refused.json()["key"]) == (400, key)
    parts: Any = [("loss", (None, b"strict")), ("loss", (None, b"lenient")), ("file", ("a.pdf", content, ""))]
    assert (await client.post("/api/upload", files=parts)).json()["key"] == "convert.upload.field_twice"
    assert stored(folder) == before


async def test_a_retry_may_change_what_may_be_lost(api: Api, converter: Converter) -> None:
    client = await api.browser()
    address = f"/api/jobs/{(await upload(client, mapping='en16931_ubl', loss='strict')).json()['job']['id']}/retry"

    async def retried(**params: str) -> tuple[str, str | None]:
        for claimed in await converter.take():
            await converter.fail(claimed, classify(GatewayRejected()))
        answer = await client.post(address, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()["requested_mapping"], answer.json()["loss"]

    assert await retried() == ("en16931_ubl", "strict")
    assert await retried(loss="lenient") == ("en16931_ubl", "lenient")
    assert await retried(mapping="auto") == ("auto", "lenient")
    assert await retried(mapping="en16931_cii", loss="strict") == ("en16931_cii", "strict")
    assert await retried(mapping="pt_simon_invoice_v1") == ("pt_simon_invoice_v1", None), "it has nothing to lose"
    for claimed in await converter.take():
        await converter.fail(claimed, classify(GatewayRejected()))
    for params in ({"loss": "strict"}, {"loss": "strict", "mapping": "oyo_v1"}):
        refused = await client.post(address, params=params)
        assert (refused.status_code, refused.json()["key"]) == (400, "convert.upload.loss_needs_e_invoices")
    assert (await client.post(address, params={"loss": "some"})).status_code == 422
    assert await retried(mapping="auto", loss="lenient") == ("auto", "lenient")


async def test_a_workbook_among_others_is_refused_alone_and_has_the_same_limit(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine_v1.json").write_text(json.dumps(MINE))
    async with serve(mappings_dir=str(tmp_path), max_upload_mb=1, api_max_request_mb=5) as api:
        files: Any = [("file", ("a.pdf", pdf(), "")), ("file", ("a.xlsx", BOOK, ""))]
        answer = await api.client().post("/api/uploads", files=files)
        assert [one["status"] for one in answer.json()["files"]] == [201, 415]
        assert len(stored(folder)) == 1
        large: Any = [("file", ("a.xlsx", large_book(), "")), ("mapping", (None, b"mine_v1"))]
        assert_problem(await api.client().post("/api/upload", files=large), 413, "TOO_LARGE")
    assert len(stored(folder)) == 1


@pytest.mark.parametrize("first", [True, False])
async def test_an_unknown_mapping_leaves_nothing_behind(api: Api, db: Database, folder: Path, first: bool) -> None:
    parts: Any = [("file", ("a.pdf", pdf(), "application/pdf")), ("mapping", (None, b"no_such_v1"))]
    answer = await api.client().post("/api/upload", files=parts[::-1] if first else parts)
    assert_problem(answer, 400, "BAD_MAPPING")
    assert "pt_simon_invoice_v1" in answer.json()["detail"]
    assert stored(folder) == []
    assert await jobs_in(db) == 0
    if first:
        assert not (folder / "uploads").exists(), "nothing was stored, not even for a moment"


async def test_what_is_no_pdf_is_refused(api: Api, db: Database, folder: Path) -> None:
    client = api.client()
    for name, content, kind in [
        ("invoice.txt", pdf(), "application/pdf"),
        ("invoice.pdf", pdf(), "text/html"),
        ("invoice.pdf", b"MZ" * 2000, "application/pdf"),
        ("invoice.pdf", b"", "application/pdf"),
        ("invoice.pdf", b" " * 1030 + b"%PDF-1.7", "application/pdf"),
        ("invoice.pdf", b"%PD", "application/pdf"),
    ]:
        assert_problem(await client.post("/api/upload", files={"file": (name, content, kind)}), 415, "NOT_PDF")
    assert stored(folder) == []
    assert await jobs_in(db) == 0


async def test_a_pdf_after_a_printers_preamble_is_one(api: Api) -> None:
    answer = await api.client().post(
        "/api/upload", files={"file": ("a.PDF", b"\x1b%-12345X@PJL\r\n" + pdf(), "application/octet-stream")}
    )
    assert answer.status_code == 201


async def test_a_broken_form_is_a_400(api: Api, folder: Path) -> None:
    form = "multipart/form-data; boundary=x"
    for body, kind in [
        (b"{}", "application/json"),
        (b"", form),
        (b"--x\r\n", form),
        (b"nonsense", form),
        (b"--x--\r\n", form),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\nhi\r\n--x--\r\n", form),
        (b"--x\r\n\r\nhi\r\n--x--\r\n", form),
        (b"a=b", "application/x-www-form-urlencoded"),
        (b"--x--", "multipart/form-data"),
    ]:
        for path in ("/api/upload", "/api/uploads"):
            answer = await api.client().post(path, content=body, headers={"Content-Type": kind})
            assert_problem(answer, 400, "VALIDATION_ERROR")
    assert stored(folder) == []


async def test_a_form_that_breaks_off_leaves_nothing(api: Api, folder: Path) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n' + pdf() + b"\r\n--x"
    answer = await api.client().post(
        "/api/upload", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert_problem(answer, 400, "VALIDATION_ERROR")
    assert stored(folder) == []


async def test_the_same_document_again_is_the_same_job(
    api: Api, browser: httpx.AsyncClient, db: Database, folder: Path, converter: Converter
) -> None:
    content = pdf()
    first = await uploaded(browser, content)
    other = await uploaded(browser)
    again = await upload(browser, content)
    assert again.status_code == 200
    assert again.json()["deduped_from"] == first == again.json()["job"]["id"]
    assert again.json()["job"]["reused"] is True
    assert [job["id"] for job in (await browser.get("/api/jobs")).json()["jobs"]] == [first, other], "moved to the top"
    await converter.finish_all()
    assert (await upload(browser, content)).json()["job"]["status"] == "complete"
    assert await jobs_in(db) == 2
    assert len(list((folder / "uploads").rglob("*.pdf"))) == 2

    assert (await upload(browser, content, mapping="en16931_cii")).status_code == 201, "another mapping"
    assert (await upload(browser, content, force="true")).status_code == 201, "by force"
    assert (await upload(await api.browser(), content)).status_code == 201, "somebody else's is none of mine"


async def test_what_failed_was_cancelled_or_has_expired_starts_anew(
    browser: httpx.AsyncClient, converter: Converter
) -> None:
    content = pdf()
    first = await uploaded(browser, content)
    (lease,) = await converter.take()
    await converter.fail(lease, Failure(Code.GW_4XX, "no", 422, False, True, None, None))
    second = await uploaded(browser, content)
    await browser.post(f"/api/jobs/{second}/cancel")
    third = await uploaded(browser, content)
    await converter.finish_all()
    await converter.connection.execute("UPDATE conversions SET status = 'expired' WHERE job_id = $1", third)
    fourth = await uploaded(browser, content)
    assert len({first, second, third, fourth}) == 4


async def test_identical_uploads_at_once_are_one_job(api: Api, db: Database, folder: Path) -> None:
    content = pdf("same") + b"x" * 200_000
    key = await api.key()
    answers = await asyncio.gather(*(upload(api.client(key), content) for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]
    assert len({answer.json()["job"]["id"] for answer in answers}) == 1
    assert await jobs_in(db) == 1
    assert len(stored(folder)) == 1


async def test_several_files_are_answered_one_by_one(api: Api, db: Database, folder: Path) -> None:
    client = await api.browser()
    same = pdf()
    files: Any = [
        ("file", ("a.pdf", same, "application/pdf")),
        ("file", ("notes.txt", b"hello", "text/plain")),
        ("files", ("b.pdf", pdf(), "application/pdf")),
        ("file", ("again.pdf", same, "application/pdf")),
        ("file", ("fake.pdf", b"<html>", "application/pdf")),
        ("mapping", (None, b"en16931_cii")),
    ]
    answer = await client.post("/api/uploads", files=files)
    assert answer.status_code == 207
    told = answer.json()["files"]
    assert [one["status"] for one in told] == [201, 415, 201, 200, 415]
    assert [one["file"] for one in told] == ["a.pdf", "notes.txt", "b.pdf", "again.pdf", "fake.pdf"]
    assert told[1]["problem"]["code"] == "NOT_PDF"
    assert told[0]["job"]["mapping"] == "en16931_cii"
    assert told[3]["deduped_from"] == told[0]["job"]["id"]
    assert len(stored(folder)) == await jobs_in(db) == 2
    fresh = [("file", ("new.pdf", pdf(), "application/pdf"))]
    assert (await client.post("/api/uploads", files=fresh)).status_code == 201
    assert (await client.post("/api/uploads", files=[*files[:1], files[-1]])).status_code == 200


async def test_a_bad_mapping_refuses_all_of_several_files(api: Api, db: Database, folder: Path) -> None:
    files: Any = [("file", (f"{n}.pdf", pdf(), "application/pdf")) for n in range(3)] + [("mapping", (None, b"nope"))]
    assert_problem(await api.client().post("/api/uploads", files=files), 400, "BAD_MAPPING")
    assert stored(folder) == []
    assert await jobs_in(db) == 0


async def test_too_many_files_at_once(serve: Serve, folder: Path) -> None:
    async with serve(api_max_files=2) as api:
        files = [("file", (f"{n}.pdf", pdf(), "application/pdf")) for n in range(3)]
        assert_problem(await api.client().post("/api/uploads", files=files), 400, "VALIDATION_ERROR")
    assert stored(folder) == []


async def test_a_too_large_file_among_others_is_refused_alone(serve: Serve, folder: Path) -> None:
    async with serve(max_upload_mb=1, api_max_request_mb=5) as api:
        files = [
            ("file", ("big.pdf", pdf() + b"x" * (2 * _MB), "application/pdf")),
            ("file", ("small.pdf", pdf(), "application/pdf")),
        ]
        answer = await api.client().post("/api/uploads", files=files)
        assert [one["status"] for one in answer.json()["files"]] == [413, 201]
        assert len(stored(folder)) == 1
        whole = [("file", (f"{n}.pdf", pdf() + b"x" * (_MB - 100), "application/pdf")) for n in range(6)]
        assert_problem(await api.client().post("/api/uploads", files=whole), 413, "TOO_LARGE")
    assert len(stored(folder)) == 1


async def test_a_full_disk_is_a_507_and_readyz_says_so(serve: Serve, folder: Path) -> None:
    async with serve(storage_min_free_mb=2**30) as api:
        client = api.client()
        assert_problem(await upload(client), 507, "IO_ERROR")
        ready = await client.get("/readyz")
        assert ready.status_code == 200, "results can still be fetched"
        assert "room" in ready.json()["storage"]
    assert stored(folder) == []


async def test_names_are_made_harmless(api: Api) -> None:
    client = await api.browser()
    for name, shown in [
        ("../../etc/passwd.pdf", "passwd.pdf"),
        ("C:\\\\Users\\\\x\\\\a.pdf", "a.pdf"),
        ("<script>alert(1)</script>.pdf", "script_.pdf"),
        ("Ünïcödé 発票.pdf", "Ünïcödé 発票.pdf"),
    ]:
        answer = await upload(client, name=name)
        assert answer.status_code == 201, answer.text
        assert answer.json()["job"]["original_name"] == shown


async def test_a_job_keeps_its_document_whatever_fails_after_it_was_committed(
    api: Api, db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def times_out(*_: object) -> None:
        raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")

    monkeypatch.setattr(durations, "samples", times_out)
    monkeypatch.setattr(breaker_control, "not_closed", times_out)
    await upload(api.client(), pdf())
    assert await jobs_in(db) == len(stored(folder)) == 1


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("filename*=UTF-8''r%C3%A9sum%C3%A9.pdf", "résumé.pdf"),
        ("filename=\"resume.pdf\"; filename*=utf-8'fr'r%C3%A9sum%C3%A9.pdf", "résumé.pdf"),
        ("filename*=iso-8859-1'en'%A3.pdf", "£.pdf"),
        ("filename=\"a.pdf\"; filename*=koi8-r''b.pdf", "a.pdf"),
        ('filename="a.pdf"; filename*; filename*1=b.pdf', "a.pdf"),
        ("filename=\"a; filename*=UTF-8''b.pdf\"", "a; filename_=UTF-8''b.pdf"),
    ],
)
async def test_a_name_may_be_spelled_as_mail_does(browser: httpx.AsyncClient, sent: str, shown: str) -> None:
    head = f'--x\r\nContent-Disposition: form-data; name="file"; {sent}\r\n\r\n'.encode()
    content = head + pdf() + b"\r\n--x--\r\n"
    answer = await browser.post(
        "/api/upload", content=content, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["job"]["original_name"] == shown
