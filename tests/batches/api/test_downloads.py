"""All results as one ZIP: whatever a member is called, its result can be unpacked anywhere and opened by anybody."""

from __future__ import annotations

import csv
import io
import json
import uuid
import zipfile

import httpx
import pytest

from support.batch_desk import Desk, batch, downloaded, files, made, notes, result, text
from support.zips import zipped
from waybill.files.names import parts_of
from waybill.storage import LocalStorage

pytestmark = pytest.mark.timeout(120)


async def renamed(desk: Desk, new: str, *paths: str) -> None:
    """Give the files of a batch these paths, which the gateway would not let through or a test cannot pack."""
    for number, path in enumerate(paths):
        await desk.sql(
            "UPDATE batch_files SET path = $3 WHERE batch_id = $1 AND number = $2 RETURNING number",
            uuid.UUID(new),
            number,
            path,
        )


HARD = (
    "plain.txt",
    "Plain.TXT",
    "plain.txt",
    "folder",
    "folder.json/in it.txt",
    "folder/in it.txt",
    "x.xml.json/y",
    "x",
    "x.xml",
    "summary.json",
    "SUMMARY",
    "errors.csv",
    "ERRORS",
    "CON",
    "aux.txt",
    "dir/NUL.pdf",
    "../up",
    "/abs",
    "C:\\win",
    "end.",
    "trail /x",
    "a//b",
    "./here",
    "..",
    "bidi\u202egpj.exe",
    "long/" + "n" * 252,
    "d" * 300 + "/x",
    "\u00e9.txt",
    "e\u0301.txt",
    "\uff0e\uff0e/x",
)


async def test_names_are_safe_and_none_comes_twice(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes(*(f"{number}.txt" for number in range(len(HARD)))))
    await desk.work()
    await renamed(desk, new, *HARD)
    got = await downloaded(browser, new)
    results = [name for name in got if name != "SUMMARY.json"]
    assert len(results) == len(HARD)
    folded = [name.casefold() for name in got]
    for name in folded:
        assert "/".join(parts_of(name)) == name
        assert all(len(part.encode()) <= 255 for part in name.split("/"))
        assert not [other for other in folded if other.startswith(f"{name}/")], "a file is no folder"
    assert got["plain.txt.json"]
    found = await files(browser, new)
    first = await result(browser, new, found[0]["doc_id"])
    assert got["plain.txt.json"] == first.content


async def test_the_list_of_errors_is_harmless_in_a_spreadsheet(desk: Desk, browser: httpx.AsyncClient) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(20)
    names = ['=cmd|"x"!A1.png', "+1.png", "-1.png", "@SUM(A1).png", 'quote",comma.png', "fine.txt"]
    new = await made(browser, zipped(*((name, text() if name == "fine.txt" else png) for name in names)))
    await desk.work()
    got = await downloaded(browser, new)
    assert got["ERRORS.csv"].startswith(b"\xef\xbb\xbf"), "so that Excel reads it as UTF-8"
    rows = list(csv.reader(io.StringIO(got["ERRORS.csv"].decode("utf-8-sig"))))
    assert rows[0] == ["path", "status", "error_type", "message"]
    assert len(rows) == 6
    assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@")]
    assert {row[0].lstrip("'") for row in rows[1:]} == set(names) - {"fine.txt"}
    assert json.loads(got["SUMMARY.json"])["counts"] == {"files": 6, "complete": 1, "failed": 5}


async def test_a_batch_without_errors_has_no_list_of_them(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"), name="Bills: May/June")
    await desk.work()
    assert list(await downloaded(browser, new)) == ["SUMMARY.json", "a.txt.json"]
    answer = await browser.get(f"/api/batches/{new}/download")
    assert answer.headers["content-type"] == "application/zip"
    assert "results.zip" in answer.headers["content-disposition"]
    assert "/" not in answer.headers["content-disposition"].partition("filename=")[2].partition(";")[0]
    assert "no-store" in answer.headers["cache-control"]
    head = await browser.head(f"/api/batches/{new}/download")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-disposition"] == answer.headers["content-disposition"]


async def test_what_vanishes_during_the_download_is_left_out_and_named(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    new = await made(browser, zipped(*((f"{n}.txt", text() + bytes([65 + n]) * 300_000) for n in range(4))))
    await desk.work()
    keys = [row[0] for row in await desk.sql("SELECT result_key FROM batch_files ORDER BY number")]
    read = b""
    async with browser.stream("GET", f"/api/batches/{new}/download") as answer:
        async for chunk in answer.aiter_bytes():
            if not read:
                await storage.delete(keys[3])
            read += chunk
    with zipfile.ZipFile(io.BytesIO(read)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() in (
            ["SUMMARY.json", "0.txt.json", "1.txt.json", "2.txt.json", "ERRORS.csv"],
            ["SUMMARY.json", *(f"{n}.txt.json" for n in range(4))],  # it had been read by then
        )


async def test_results_come_with_a_tag_and_once(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt", "b.txt"))
    await desk.work(["process_batch"])
    first, second = await files(browser, new)
    early = await result(browser, new, first["doc_id"])
    assert (early.status_code, early.json()["code"]) == (409, "NOT_READY")
    await desk.work()
    got, other = await result(browser, new, first["doc_id"]), await result(browser, new, second["doc_id"])
    assert got.headers["etag"] != other.headers["etag"], "although both lie in one object"
    assert (got.headers["content-type"], int(got.headers["content-length"])) == ("application/json", len(got.content))
    assert (await files(browser, new))[0]["result_bytes"] == len(got.content)
    assert 'filename="a.txt.json"' in got.headers["content-disposition"]
    path = f"/api/batches/{new}/files/{first['doc_id']}/result"
    again = await browser.get(path, headers={"If-None-Match": got.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await browser.head(path)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(got.content)), b"")
    assert (await browser.get(path, params={"format": "pdf"})).status_code == 422
    assert (await browser.get(f"/api/batches/{new}/files/nothing/result")).status_code == 404
    assert (await browser.get(f"/api/batches/{new}/files/%00/result")).status_code == 400
    assert (await batch(browser, new))["downloadable"] is True
