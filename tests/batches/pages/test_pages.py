"""Every page: what a browser may do with it, and where it leads."""

from __future__ import annotations

import io
import re
import uuid
import zipfile

import httpx

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def paths(browser: httpx.AsyncClient) -> list[str]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "a")
    answer = await browser.post("/batches", files={"file": ("a.zip", buffer.getvalue())})
    batch = answer.headers["location"]
    return ["/batches", batch, f"{batch}/summary"]


async def test_pages_run_nothing_inline_and_nothing_from_elsewhere(browser: httpx.AsyncClient) -> None:
    for path in await paths(browser):
        page = await browser.get(path, headers=HTML)
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page.text)
        assert not re.search(r"<script(?![^>]*\ssrc=)(?! type=\"application/json\")", page.text)
        assert all(address.startswith("/") for address in re.findall(r'(?:src|action)="([^"]+)"', page.text))


async def test_every_address_on_a_page_exists(browser: httpx.AsyncClient) -> None:
    seen = set()
    for path in await paths(browser):
        page = await browser.get(path)
        seen |= set(re.findall(r'(?:src|href)="(/[^"]*)"', page.text))
    assert "/batches" in seen
    for address in seen:
        assert (await browser.get(address)).status_code == 200, address


async def test_forms_of_other_sites_are_refused(browser: httpx.AsyncClient) -> None:
    for path in ("/batches", *(f"/batches/{uuid.uuid4()}/{act}" for act in ("retry", "cancel", "delete"))):
        answer = await browser.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403, path


async def test_the_navigation_names_batches_after_the_pages_people_land_on(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/batches")
    ways = re.search(r'(?s)<nav class="ways".*?</nav>', page.text)
    assert ways is not None
    assert re.findall(r'href="([^"]+)"', ways[0]) == ["/", "/queue", "/batches"]
    assert 'href="/batches" aria-current="page"' in ways[0]
