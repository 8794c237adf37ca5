"""Results leave whole, under a harmless name, and only while they are there."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from support.api_server import Converter, upload, uploaded
from waybill.errors import Code
from waybill.failures import Failure


async def test_a_result_as_its_owner_gets_it(browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser)
    early = await browser.get(f"/api/jobs/{job}/download")
    assert (early.status_code, early.json()["code"]) == (409, "NOT_READY")
    xml = b"<TaxInvoiceBulk>" + b"x" * 3_000_000 + b"</TaxInvoiceBulk>"
    (lease,) = await converter.take()
    await converter.finish(lease, xml, b'{"fields": []}')
    answer = await browser.get(f"/api/jobs/{job}/download")
    assert answer.content == xml
    assert answer.headers["content-length"] == str(len(xml))
    assert answer.headers["content-type"] == "application/xml"
    assert answer.headers["content-disposition"].startswith(f'attachment; filename="invoice-{job}.xml"')
    again = await browser.get(f"/api/jobs/{job}/download", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert await converter.connection.fetchval("SELECT downloaded_at IS NOT NULL FROM conversions")
    assert (await browser.get(f"/api/jobs/{job}/provenance")).json() == {"fields": []}


async def test_what_is_gone_has_expired(browser: httpx.AsyncClient, converter: Converter, folder: Path) -> None:
    lost, expired = await uploaded(browser), await uploaded(browser)
    await converter.finish_all()
    for file in (folder / "results").rglob(f"{lost}/*"):
        file.unlink()
    await converter.connection.execute("UPDATE conversions SET status = 'expired' WHERE job_id = $1", expired)
    for job in (lost, expired):
        for path in (f"/api/jobs/{job}/download", f"/api/jobs/download?ids={job}", f"/api/jobs/{job}/provenance"):
            answer = await browser.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED"), path


async def test_everything_that_is_ready_is_in_the_archive(
    browser: httpx.AsyncClient, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_convert.download_service._AT_A_TIME", 3)
    monkeypatch.setattr("waybill_convert.api.downloads._NOTED_TOGETHER", 2)
    assert (await browser.get("/api/jobs/download")).json()["code"] == "NOT_READY"
    jobs = [await uploaded(browser) for _ in range(8)]
    await converter.finish_all(b"<whole/>")
    answer = await browser.get("/api/jobs/download")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.namelist() == [f"invoice-{job}.xml" for job in reversed(jobs)]
    assert {archive.read(name) for name in archive.namelist()} == {b"<whole/>"}
    noted = "SELECT count(*) FROM conversions WHERE downloaded_at IS NOT NULL"
    assert await converter.connection.fetchval(noted) == 8


async def test_an_archive_names_what_went_missing(
    browser: httpx.AsyncClient, converter: Converter, folder: Path
) -> None:
    jobs = [await uploaded(browser) for _ in range(4)]
    await converter.finish_all()
    for lost in (jobs[1], jobs[3]):  # one in the middle, and the first that is looked for
        for file in (folder / "results").rglob(f"{lost}/*"):
            file.unlink()
    for path in ("/api/jobs/download", f"/api/jobs/download?ids={','.join(reversed(jobs))}"):
        archive = zipfile.ZipFile(io.BytesIO((await browser.get(path)).content))
        assert archive.testzip() is None
        *there, note = archive.namelist()
        assert there == [f"invoice-{jobs[2]}.xml", f"invoice-{jobs[0]}.xml"]
        assert note == "NOT IN THIS ARCHIVE.txt"
        text = archive.read(note).decode("utf-8-sig")
        assert [f"invoice-{job}.xml" in text for job in jobs] == [False, True, False, True]


async def test_what_failed_has_no_result(browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser)
    (lease,) = await converter.take()
    await converter.fail(lease, Failure(Code.GW_4XX, "no", 422, False, True, None, None))
    answer = await browser.get(f"/api/jobs/{job}/download")
    assert (answer.status_code, answer.json()["detail"]) == (409, "There is no result: the conversion failed.")


async def test_names_do_nothing_in_headers_and_json(browser: httpx.AsyncClient, converter: Converter) -> None:
    names = [
        '"><img src=x onerror=alert(1)>.pdf',
        "a%0d%0aSet-Cookie: evil=1.pdf",
        "résumé ‮fdp.exe.pdf",
        "発票;filename=evil.exe.pdf",
        "'; DROP TABLE jobs; --.pdf",
        "con.pdf",
        "{{7*7}}${7*7}.pdf",
    ]
    for name in names:
        answer = await upload(browser, name=name)
        assert answer.status_code == 201, (name, answer.text)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        shown = answer.json()["job"]["original_name"]
        assert not set('<>"\r\n\x00/\\') & set(shown), shown
        assert "‮" not in shown
    await converter.finish_all()
    for job in (await browser.get("/api/jobs")).json()["jobs"]:
        answer = await browser.get(job["links"]["download"])
        assert [name for name, _ in answer.headers.multi_items() if name == "set-cookie"] == []
        sent = answer.headers["content-disposition"]
        match = re.fullmatch(r"attachment; filename=\"([ -~]+?)\"; filename\*=UTF-8''([!-~]+)", sent)
        assert match is not None, sent
        assert '"' not in match[1]
        assert unquote(match[2]) == f"{job['original_name'].removesuffix('.pdf')}-{job['id']}.xml"


async def test_error_texts_stay_text(browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser)
    (lease,) = await converter.take()
    nasty = "<script>alert(1)</script>"
    failure = Failure(Code.GW_4XX, nasty, 422, False, True, None, {"findings": [{"message": nasty}]})
    await converter.fail(lease, failure)
    answer = await browser.get(f"/api/jobs/{job}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["findings"] == [{"message": nasty}]
