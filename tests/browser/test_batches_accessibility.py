"""axe-core finds nothing on the pages of batches either, and nothing sticks out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from browser.batch_states import all_batches, payload, zipped
from browser.conftest import OpenPage
from browser.test_accessibility import Look, _is_fine, _open, looks
from support.stack import Stack

Arrange = Callable[[Page, dict[str, str]], Awaitable[None]]


async def _list(page: Page, batches: dict[str, str]) -> None:
    await page.goto("/batches")


async def _chosen(page: Page, batches: dict[str, str]) -> None:
    await page.goto("/batches")
    await page.set_input_files("#zip", payload("Invoices of August.zip", zipped(("a.txt", b"a"))))
    await expect(page.locator("#suggest")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, "something sticks out"
    await page.locator("#suggest").click()
    await expect(page.locator("#rule-list li")).to_have_count(1)


async def _batch(page: Page, batches: dict[str, str]) -> None:
    await page.goto(f"/batches/{batches['partly']}")
    await expect(page.locator("tr.entry").first).to_be_visible()


async def _going(page: Page, batches: dict[str, str]) -> None:
    await page.goto(f"/batches/{batches['going']}?status=complete")
    await expect(page.locator("tr.entry").first).to_be_visible()


async def _file(page: Page, batches: dict[str, str]) -> None:
    await _batch(page, batches)
    await page.locator("a[data-file]").first.click()
    await expect(page.locator("#look")).to_be_visible()


async def _summary(page: Page, batches: dict[str, str]) -> None:
    await page.goto(f"/batches/{batches['partly']}/summary")


VIEWS: dict[str, Arrange] = {
    "batches": _list,
    "batches-upload": _chosen,
    "batch": _batch,
    "batch-going": _going,
    "batch-file": _file,
    "batch-summary": _summary,
}


@looks
async def test_nothing_to_complain_about_batches(still: Stack, open_page: OpenPage, look: Look) -> None:
    page = await _open(open_page, still, look)
    await page.goto("/batches")
    await _is_fine(page, "batches-empty", look)
    batches = await all_batches(page, still)
    for name, arrange in VIEWS.items():
        await arrange(page, batches)
        await _is_fine(page, name, look)


@pytest.mark.parametrize("width", [390, 768, 1600])
async def test_nothing_sticks_out_at_any_width(still: Stack, open_page: OpenPage, width: int) -> None:
    page = await open_page(still, "/batches", viewport={"width": width, "height": 800}, locale="id-ID")
    batches = await all_batches(page, still)
    for arrange in VIEWS.values():
        await arrange(page, batches)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
