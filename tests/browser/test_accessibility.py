"""axe-core finds nothing on any page, in light and dark, wide and narrow; nothing sticks out at 320 pixels."""

from __future__ import annotations

import io
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Page, expect

from browser.conftest import Invoice, OpenPage, Upload
from browser.states import all_states
from support.stack import Stack

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.0.min.js").read_text()
RUN = """async () => (await axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
})).violations.map((found) => `${found.id}: ${found.help}: ${found.nodes.map((node) => node.html).join(" | ")}`)"""

# Where a person wants to keep what the pages look like; `docs/screenshots` is made with it.
SHOTS = os.environ.get("WAYBILL_TEST_SCREENSHOTS")
SIZES = {1280: 800, 320: 640}

Arrange = Callable[[Page, Stack, Upload, Invoice], Awaitable[None]]


async def _upload(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/")


async def _files(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/")
    files = [invoice(f"Faktur 25080700{number:02}.pdf", seed=number) for number in range(1, 6)]
    fake = files[0].with_name("photo.pdf")
    fake.write_bytes(b"not a PDF")
    await page.set_input_files("#files", [*files, fake])
    await expect(page.locator(".file")).to_have_count(6)
    await expect(page.locator(".why")).to_have_count(1)


async def _busy(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    ids = await all_states(page, stack, upload)
    await page.goto("/queue")
    await page.locator(f"#job-{ids['failed']} summary").click()
    await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


async def _empty(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/queue")


async def _sign_in(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/sign-in")
    await page.get_by_label("Key").fill("wb_nonsense")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator(".why")).to_be_visible()


async def _problem(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/no/such/page")


PAGES = {
    "upload": _upload,
    "upload-files": _files,
    "queue": _busy,
    "queue-empty": _empty,
    "sign-in": _sign_in,
    "problem": _problem,
}


@pytest.mark.parametrize(
    ("colours", "width"),
    [
        ("light", 1280),
        ("dark", 320),
        pytest.param("dark", 1280, marks=pytest.mark.heavy),
        pytest.param("light", 320, marks=pytest.mark.heavy),
    ],
)
@pytest.mark.parametrize("name", PAGES)
async def test_nothing_to_complain_about(
    still: Stack, open_page: OpenPage, upload: Upload, invoice: Invoice, name: str, colours: str, width: int
) -> None:
    size = {"width": width, "height": SIZES[width]}
    page = await open_page(
        still,
        viewport=size,
        color_scheme=colours,
        reduced_motion="reduce",
        timezone_id="UTC",
        expected=("401", "404"),
    )
    await PAGES[name](page, still, upload, invoice)
    await page.wait_for_load_state("load")
    assert await page.evaluate("document.documentElement.scrollWidth") <= width, "something sticks out"
    await page.evaluate(AXE)
    assert await page.evaluate(RUN) == []
    if SHOTS:
        taken = await page.screenshot(full_page=name.startswith("queue"))
        # Few colours are used, and few are kept: a tenth of the size.
        picture = Image.open(io.BytesIO(taken)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        narrow = "-320" if width == 320 else ""
        picture.save(Path(SHOTS) / f"{name}-{colours}{narrow}.png", optimize=True)
