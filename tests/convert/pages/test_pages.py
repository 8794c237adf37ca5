"""Every page: what a browser may do with it, and where it leads."""

from __future__ import annotations

import re
import uuid

import httpx
import pytest

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/queue", "/sign-in", "/no/such/page"])
async def test_pages_run_nothing_inline_and_nothing_from_elsewhere(browser: httpx.AsyncClient, path: str) -> None:
    page = await browser.get(path, headers=HTML)
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page.text)
    assert not re.search(r"<script(?![^>]*\ssrc=)(?! type=\"application/json\")", page.text)
    assert all(address.startswith("/") for address in re.findall(r'(?:src|action)="([^"]+)"', page.text))


async def test_every_address_on_a_page_exists(browser: httpx.AsyncClient) -> None:
    seen = set()
    for path in ("/", "/queue", "/sign-in"):
        page = await browser.get(path)
        seen |= set(re.findall(r'(?:src|href)="(/[^"]*)"', page.text))
    for address in seen:
        assert (await browser.get(address)).status_code == 200, address


async def test_forms_of_other_sites_are_refused(browser: httpx.AsyncClient) -> None:
    for path in ("/", "/sample", "/theme", f"/queue/{uuid.uuid4()}/cancel"):
        answer = await browser.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403, path
