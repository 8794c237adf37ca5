"""The review page under load: one visitor's open pages neither stop the API nor keep others waiting."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from functools import cache
from html import escape, unescape
from pathlib import Path

import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api, Converter, uploaded
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import until
from support.reviewed_invoices import Read, end, good, read
from support.sheets import Rows, workbook
from waybill.web.languages import LANGUAGES
from waybill_convert.web_context import ConvertContext
from waybill_documents.conversion import convert
from waybill_documents.document_reader import Kind
from waybill_documents.mapping import loader
from waybill_documents.mapping_folder import read_folder


@cache
def long() -> Read:
    return read(print_invoice(make_invoice(7, 250), REFERENCE))


async def reviewable(client: httpx.AsyncClient, converter: Converter, document: Read) -> str:
    job = await uploaded(client, document.pdf)
    await end(converter, document)
    return job


async def test_many_pages_of_one_visitor_are_bounded_and_another_one_is_served_meanwhile(
    api: Api, converter: Converter
) -> None:
    many, other = await api.browser(), await api.browser()
    many.timeout = other.timeout = httpx.Timeout(None)  # a busy machine takes long; the test has a limit of its own
    theirs, mine = await reviewable(many, converter, long()), await reviewable(other, converter, good())
    assert (await other.get(f"/review/{mine}")).status_code == 200
    opening = [asyncio.create_task(many.get(f"/review/{theirs}")) for _ in range(40)]
    places = api.context.service(ConvertContext).desk._places
    await until(lambda: places.waiting > 5)
    assert (await other.get(f"/review/{mine}")).status_code == 200
    assert places.waiting, "the newcomer did not wait for all of them"
    answers = await asyncio.gather(*opening)
    assert {answer.status_code for answer in answers} == {200, 429}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status_code == 429)


async def test_pages_that_nobody_waits_for_are_not_made(api: Api, converter: Converter) -> None:
    browser = await api.browser()
    browser.timeout = httpx.Timeout(None)
    job = await reviewable(browser, converter, long())
    assert (await browser.get(f"/review/{job}")).status_code == 200
    places = api.context.service(ConvertContext).desk._places
    opening = [asyncio.create_task(browser.get(f"/review/{job}")) for _ in range(10)]
    await until(lambda: places.waiting > 5)
    for task in opening:
        task.cancel()
    await asyncio.gather(*opening, return_exceptions=True)
    await until(lambda: not places.waiting and not places.running)
    assert (await browser.get("/livez")).status_code == 200


async def test_the_page_sends_one_window_of_lines_and_the_rest_on_demand(api: Api, converter: Converter) -> None:
    browser = await api.browser()
    job = await reviewable(browser, converter, long())
    page = (await browser.get(f"/review/{job}")).text
    assert (page.count('id="r-lines.'), page.count('class="later"')) == (30, 8)
    other = (await browser.get(f"/review/{job}?at=lines[120]")).text
    assert 'id="r-lines.120"' in other
    assert 'id="r-lines.0"' not in other
    lines = (await browser.get(f"/review/{job}/lines", params={"at": "lines[249]", "revision": "0"})).json()
    assert lines["rows"].count('<tr id="r-lines.') == 10, "the last window has what is left"
    assert 'id="b-lines.249.amount"' in "".join(lines["boxes"].values())
    for nowhere in ("lines[270]", "other[0]", "number", "lines[99999999]"):
        assert (await browser.get(f"/review/{job}/lines", params={"at": nowhere})).status_code == 404
    assert (await (await api.browser()).get(f"/review/{job}/lines", params={"at": "lines[0]"})).status_code == 404


async def test_a_job_and_its_review_link_to_the_trace_if_the_settings_say_where_traces_are(
    serve: Serve, converter: Converter
) -> None:
    template = "https://traces.example.com/{trace_id}?q=1&from=now"
    async with serve(trace_url_template=template) as api:
        browser = await api.browser()
        job = await reviewable(browser, converter, good())
        url = template.format(trace_id=uuid.UUID(job).hex)
        assert (await browser.get(f"/api/jobs/{job}")).json()["trace_url"] == url
        for language, word in (("en", "Trace"), ("id", "Jejak")):
            page = (await browser.get(f"/review/{job}", headers={"Accept-Language": language})).text
            assert f'<a href="{escape(url)}" rel="noreferrer">{word}</a>' in page
    async with serve() as api:
        client = api.client(cookies=dict(browser.cookies))
        assert (await client.get(f"/api/jobs/{job}")).json()["trace_url"] is None
        assert "noreferrer" not in (await client.get(f"/review/{job}")).text


SHEETS = {
    "format": 1,
    "name": "sheet_v1",
    "title": "Sheet",
    "locale": {"base": "de"},
    "fields": {"total": {"type": "decimal", "label": "Summe"}},
    "xml": {"root": {"name": "I", "value": "total"}},
}


@pytest.mark.parametrize(
    ("name", "kind", "cell"), [("a.xlsx", "xlsx", "'Blatt 1'!B2"), ("a.csv", "text", "B2")], ids=["workbook", "csv"]
)
async def test_an_uploaded_workbook_is_shown_by_its_cells_and_corrected(
    serve: Serve, converter: Converter, tmp_path: Path, name: str, kind: Kind, cell: str
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sheet_v1.json").write_text(json.dumps(SHEETS))
    files = read_folder(tmp_path / "mine").mappings["sheet_v1"].files
    assert files is not None
    path = tmp_path / name
    rows: Rows = [["Artikel", "Betrag"], ["Summe", "37,05"]]
    if kind == "xlsx":
        workbook(path, {"Blatt 1": rows})
    else:
        path.write_text("Artikel;Betrag\nSumme;37,05\n")
    answer = convert(path, kind, mapping=loader.load(files), wants="conversion", clock=time.monotonic)
    record = json.loads(answer.body)
    made = Read(path.read_bytes(), json.dumps(record).encode(), record.pop("xml").encode())
    async with serve(mappings_dir=str(tmp_path / "mine")) as api:
        browser = await api.browser()
        sent = {"file": (name, made.pdf, "application/octet-stream")}
        uploaded = await browser.post("/api/upload", files=sent, data={"mapping": "sheet_v1"})
        assert uploaded.status_code == 201, uploaded.text
        job = uploaded.json()["job"]["id"]
        await end(converter, made)
        for language in LANGUAGES.values():
            page = (await browser.get(f"/review/{job}", headers={"Accept-Language": language.code})).text
            assert language.say("convert.review_page.no_page_image") in page
            assert cell in unescape(page)
            assert f"/api/jobs/{job}/pages" not in page
        changes = [{"path": "total", "value": "38,00"}]
        saved = await browser.post(f"/api/jobs/{job}/revisions", json={"base": 0, "changes": changes})
        assert saved.status_code == 201, saved.text
        assert (await browser.get(f"/api/jobs/{job}/revisions/1")).json()["data"]["total"] == "38.00"
        result = await browser.get(f"/api/jobs/{job}/download")
        assert ">38.00</I>" in result.text
        assert f'"a-{job}.xml"' in result.headers["content-disposition"]
