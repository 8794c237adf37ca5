"""The pages as HTTP: what a browser is allowed to do with them, where they lead, and how fast they are made."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from pages.test_words import job
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from waybill.web.languages import ENGLISH
from waybill.web.layout import Frame, render
from waybill_convert.models import Fault, Listing
from waybill_convert.pages.queue import Shown, queue, shown
from waybill_convert.status import Status

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WEB = Path(str(files("waybill.web")))
PAGES = Path(str(files("waybill_convert.pages")))


@pytest.mark.parametrize("path", ["/", "/queue", "/sign-in", "/no/such/page"])
async def test_pages_run_nothing_inline_and_nothing_from_elsewhere(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(path, headers=HTML)
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page.text)
    assert not re.search(r"<script(?![^>]*\ssrc=)(?! type=\"application/json\")", page.text)
    assert all(address.startswith("/") for address in re.findall(r'(?:src|action)="([^"]+)"', page.text))


async def test_every_address_on_a_page_exists(client: httpx.AsyncClient) -> None:
    seen = set()
    for path in ("/", "/queue", "/sign-in"):
        page = await client.get(path)
        seen |= set(re.findall(r'(?:src|href)="(/[^"]*)"', page.text))
    for address in seen:
        assert (await client.get(address)).status_code == 200, address


async def test_static_files_are_kept_for_ever_under_their_version(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    sheet = re.search(r'href="(/static/[^"]+/style.css)"', page.text)
    assert sheet is not None
    answer = await client.get(sheet[1])
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    other = await client.get("/static/another-version/style.css")
    assert other.status_code == 200
    assert other.headers["cache-control"] == "no-cache"
    for name in ("../layout.py", "..%2Flayout.py", "vendor/", "nothing.css"):
        assert (await client.get(f"/static/x/{name}", follow_redirects=True)).status_code == 404


async def test_people_get_problem_pages_and_programs_get_documents(client: httpx.AsyncClient) -> None:
    page = await client.get("/no/such/page", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Nothing here" in page.text
    document = await client.get("/no/such/page")
    assert document.headers["content-type"] == "application/problem+json"
    missing = await client.get(f"/api/jobs/{job().id}/download", headers=HTML)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    live = await client.get("/no/such/page", headers=HTML | {"HX-Request": "true"})
    assert live.headers["content-type"] == "application/problem+json"


async def test_a_key_that_is_none_is_asked_for_again(client: httpx.AsyncClient) -> None:
    answer = await client.post("/session", data={"key": "wb_<b>"}, headers=HTML)
    assert answer.status_code == 401
    assert "This is not an API key of ours." in answer.text
    assert 'action="/session"' in answer.text
    assert "wb_<b>" not in answer.text


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/\t/evil", ""])
async def test_colours_never_lead_elsewhere(client: httpx.AsyncClient, back: str) -> None:
    answer = await client.post("/theme", data={"theme": "dark", "back": back})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "waybill_theme=dark" in answer.headers["set-cookie"]


async def test_colours_lead_back_where_one_was(client: httpx.AsyncClient) -> None:
    answer = await client.post("/theme", data={"theme": "odd", "back": "/queue?status=failed"})
    assert answer.headers["location"] == "/queue?status=failed"
    assert 'waybill_theme=""' in answer.headers["set-cookie"]


async def test_forms_of_other_sites_are_refused(client: httpx.AsyncClient) -> None:
    for path in ("/", "/sample", "/theme", f"/queue/{job().id}/cancel"):
        answer = await client.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403, path


async def test_the_queue_is_also_served_as_the_part_that_changes(client: httpx.AsyncClient) -> None:
    whole = await client.get("/queue")
    part = await client.get("/queue", headers={"HX-Request": "true"})
    assert "<html" in whole.text
    assert "<html" not in part.text
    assert 'id="counts"' in part.text
    assert "HX-Request" in part.headers["vary"]


def test_addresses_are_read_leniently() -> None:
    assert shown(status="nonsense", q="  a\x00b ", limit="many") == Shown(words="ab")
    assert shown(limit="100000").limit == 500
    assert shown(limit="0").limit == 1
    assert Shown("failed", "a&b").query(cursor="c") == "?status=failed&q=a%26b&cursor=c"


def test_five_hundred_rows_are_made_in_less_than_50_ms() -> None:
    now = datetime.now(UTC)
    fault = Fault("GW_4XX", "The totals do not add up.", [{"message": "Line 3", "page": 1}, {"message": "Line 4"}])
    jobs = [job(list(Status)[number % 6], error=fault, remaining_seconds=3) for number in range(500)]
    listing = Listing(jobs, None, "", dict.fromkeys(Status, 80), None)
    taken = []
    for _ in range(7):
        begun = time.process_time()
        text = render(
            "queue.html", ENGLISH, page=Frame("queue", None, "", "/"), queue=queue(listing, Shown(), now, ENGLISH)
        )
        taken.append(time.process_time() - begun)
    assert text.count('class="job ') == 500
    assert min(taken) < 0.05


def test_the_sample_is_our_own_invoice() -> None:
    printed = print_invoice(make_invoice(2025, 8, whole=True), REFERENCE)
    assert (PAGES / "sample" / "sample-invoice.pdf").read_bytes() == printed


def test_what_is_vendored_has_its_licence() -> None:
    vendored = WEB / "static" / "vendor"
    for script in vendored.glob("*.js"):
        name = re.sub(r"-\d.*", "", script.name)
        assert "Permission to use, copy, modify" in (vendored / f"{name}.LICENSE.txt").read_text()
