"""`/batches/{id}`: rows come in pages, and what is not yours is not there."""

from __future__ import annotations

import io
import uuid
import zipfile
from typing import Any

import httpx
import pytest

from support.api_server import Api
from waybill.db import Database
from waybill_batches.pages.batch_page import ROWS

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

_FILES = """
INSERT INTO batch_files (batch_id, number, owner, doc_id, path, type, bytes, sha256, status)
SELECT id, number, owner, md5(number::text),
       'folder/' || number || CASE WHEN number = 3 THEN '<b>&.txt' ELSE '.txt' END,
       'text', 5, 'a', CASE WHEN number = 7 THEN 'failed' ELSE 'complete' END
  FROM batches, generate_series(0, $2::int - 1) AS number WHERE id = $1
"""


async def sent(browser: httpx.AsyncClient, name: str = "a.zip") -> uuid.UUID:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), name)  # without the time, so that two are the same
    answer = await browser.post("/batches", files={"file": (name, buffer.getvalue())})
    assert answer.status_code == 303, answer.text
    return uuid.UUID(answer.headers["location"].rpartition("/")[2])


async def filled(browser: httpx.AsyncClient, db: Database, number: int) -> uuid.UUID:
    batch = await sent(browser)
    async with db.hot() as connection:
        await connection.execute(_FILES, batch, number)
    return batch


async def test_the_form_makes_a_batch_and_the_same_zip_is_that_batch(browser: httpx.AsyncClient) -> None:
    first = await sent(browser)
    assert await sent(browser) == first
    page = await browser.get("/batches", headers=HTML)
    assert page.text.count('class="job batch') == 1


async def test_a_refused_form_shows_why_and_what_is_there(browser: httpx.AsyncClient) -> None:
    await sent(browser)
    answer = await browser.post("/batches", files={"file": ("a.zip", b"no ZIP")}, headers=HTML)
    assert answer.status_code == 422
    assert "This file is not a ZIP." in answer.text
    assert 'class="job batch' in answer.text
    rules = '[{"pattern": "*.pdf", "mapping": "no_such_mapping"}]'
    answer = await browser.post("/batches", files={"file": ("a.zip", b"PK\x03\x04")}, data={"rules": rules})
    assert answer.status_code == 422


async def test_rows_come_in_pages_that_add_up(browser: httpx.AsyncClient, db: Database) -> None:
    batch = await filled(browser, db, ROWS * 2 + 5)
    rows: list[str] = []
    cursor: dict[str, Any] = {}
    for _ in range(3):
        answer = (await browser.get(f"/batches/{batch}/rows", params=cursor)).json()
        rows += answer["rows"]
        cursor = {"cursor": answer["next"]}
    assert answer["next"] is None
    bare = (await browser.get(f"/batches/{batch}/rows?bare=1")).json()
    assert (bare["rows"], bare["count"]) == (None, ROWS)
    assert len(rows) == len(set(rows)) == ROWS * 2 + 5
    assert "entry failed" in rows[0], "what failed comes first"
    assert all(row.startswith("<tr ") and row.endswith("</tr>") for row in rows)
    dangerous = next(row for row in rows if "&lt;b&gt;&amp;.txt" in row)
    assert "<b>" not in dangerous


async def test_a_script_gets_the_part_that_changes(browser: httpx.AsyncClient, db: Database) -> None:
    batch = await filled(browser, db, 3)
    for path in ("/batches", f"/batches/{batch}", f"/batches/{batch}/summary", f"/batches/{batch}/files/{'0' * 32}"):
        whole = await browser.get(path)
        part = await browser.get(path, headers={"Waybill-Part": "1"})
        assert "Waybill-Part" in whole.headers.get("vary", "") or whole.status_code == 404
        assert "<html" not in part.text
        assert part.status_code == whole.status_code


async def test_a_file_is_told_of_though_its_result_is_gone(browser: httpx.AsyncClient, db: Database) -> None:
    batch = await filled(browser, db, 1)
    async with db.hot() as connection:
        doc = await connection.fetchval(
            "UPDATE batch_files SET result_key = 'gone', result_at = 0, result_bytes = 5 WHERE batch_id = $1"
            " RETURNING doc_id",
            batch,
        )
    page = await browser.get(f"/batches/{batch}/files/{doc}", headers=HTML)
    assert page.status_code == 200
    assert "folder/0.txt" in page.text
    assert "<pre" not in page.text


@pytest.mark.parametrize("below", ["", "/summary", "/rows", "/files/a"])
async def test_what_is_somebody_elses_is_the_usual_page_of_what_is_missing(
    api: Api, browser: httpx.AsyncClient, below: str
) -> None:
    batch = await sent(browser)
    other = await api.browser()
    foreign = await other.get(f"/batches/{batch}{below}", headers=HTML)
    missing = await other.get(f"/batches/{uuid.uuid4()}{below}", headers=HTML)
    assert foreign.status_code == missing.status_code == 404
    assert "Nothing here" in foreign.text
    for act in ("retry", "cancel", "delete"):
        assert (await other.post(f"/batches/{batch}/{act}")).status_code == 404
    assert (await other.get("/batches/no-id", headers=HTML)).status_code in (404, 422)


async def test_acting_leads_back_to_where_one_was(browser: httpx.AsyncClient) -> None:
    batch = await sent(browser)
    answer = await browser.post(f"/batches/{batch}/cancel?listed=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/batches")
    answer = await browser.post(f"/batches/{batch}/cancel", headers={"Waybill-Part": "1"})
    assert answer.status_code == 409, "it has ended"
    answer = await browser.post(f"/batches/{batch}/retry")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/batches/{batch}")
