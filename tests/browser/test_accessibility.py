"""axe-core finds nothing on any page, in light and dark, wide and narrow, in every language; nothing sticks out."""

from __future__ import annotations

import io
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from PIL import Image
from playwright.async_api import Page, expect

from browser.conftest import Invoice, OpenPage, Upload
from browser.states import all_states
from browser.test_review import in_doubt, uploaded
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import unknown_unit
from support.stack import Stack
from waybill.security import ADMIN, keys

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
    await page.locator("#key").fill("wb_nonsense")
    await page.locator("form[action='/session'] button").click()
    await expect(page.locator(".why")).to_be_visible()


async def _problem(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    await page.goto("/no/such/page")


async def _ops(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    connection = await asyncpg.connect(stack.database_url)
    try:
        key = await keys.create(connection, tenant="operators", name="axe", permissions=[ADMIN])
    finally:
        await connection.close()
    await page.goto("/sign-in")
    await page.locator("#key").fill(key.text)
    await page.locator("form[action='/session'] button").click()
    await expect(page).to_have_url(f"{stack.url}/ops")


async def _review(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    wrong = unknown_unit(make_invoice(41, 40), 12)
    job = await uploaded(page, print_invoice(wrong, REFERENCE), "failed", "Faktur 2508070041.pdf")
    await page.goto(f"/review/{job}")
    await page.locator("#problems li a").first.click()
    await expect(page.locator(".leaf .lit")).to_be_attached()
    await page.evaluate("() => Promise.all([...document.images].slice(0, 2).map((each) => each.decode()))")


async def _changes(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    job = await uploaded(page, print_invoice(make_invoice(42, 3), REFERENCE))
    for base, name in enumerate(("PT Maju", "PT Maju Jaya")):
        change = {"base": base, "changes": [{"path": "buyer_name", "value": name}]}
        assert (await page.request.post(f"/api/jobs/{job}/revisions", data=change)).status == 201
    await page.goto(f"/review/{job}/changes/0/2")


STILL = {
    "upload": _upload,
    "upload-files": _files,
    "queue": _busy,
    "queue-empty": _empty,
    "sign-in": _sign_in,
    "problem": _problem,
    "ops": _ops,
}


async def _doubts(page: Page, stack: Stack, upload: Upload, invoice: Invoice) -> None:
    job = await in_doubt(page, stack, print_invoice(make_invoice(43, 40), REFERENCE), "Faktur 2508070043.pdf")
    await page.goto(f"/review/{job}")
    await page.evaluate("() => Promise.all([...document.images].slice(0, 2).map((each) => each.decode()))")


CONVERTED = {"review": _review, "review-changes": _changes, "review-doubts": _doubts}
"""Pages that need a converter."""


@dataclass(frozen=True)
class Look:
    language: str
    colours: str
    width: int

    def __str__(self) -> str:
        return f"{self.language}-{self.colours}-{self.width}"


FEW = (Look("id", "dark", 320),)
OTHERS = (
    Look("en", "light", 1280),
    Look("en", "dark", 1280),
    Look("en", "light", 320),
    Look("en", "dark", 320),
    Look("id", "light", 1280),
    Look("id", "dark", 1280),
    Look("id", "light", 320),
)
looks = pytest.mark.parametrize(
    "look", [*FEW, *(pytest.param(look, marks=pytest.mark.heavy) for look in OTHERS)], ids=str
)


@looks
@pytest.mark.parametrize("name", STILL)
async def test_nothing_to_complain_about(
    still: Stack, open_page: OpenPage, upload: Upload, invoice: Invoice, name: str, look: Look
) -> None:
    page = await _open(open_page, still, look)
    await STILL[name](page, still, upload, invoice)
    await _is_fine(page, name, look)


@looks
@pytest.mark.parametrize("name", CONVERTED)
async def test_nothing_to_complain_about_a_review(
    working: Stack, open_page: OpenPage, upload: Upload, invoice: Invoice, name: str, look: Look
) -> None:
    page = await _open(open_page, working, look)
    await CONVERTED[name](page, working, upload, invoice)
    await _is_fine(page, name, look)


async def _open(open_page: OpenPage, stack: Stack, look: Look) -> Page:
    return await open_page(
        stack,
        viewport={"width": look.width, "height": SIZES[look.width]},
        color_scheme=look.colours,
        reduced_motion="reduce",
        locale={"en": "en-GB", "id": "id-ID"}[look.language],
        timezone_id="UTC",
        expected=("401", "404"),
    )


async def _is_fine(page: Page, name: str, look: Look) -> None:
    await page.wait_for_load_state("load")
    assert await page.evaluate("document.documentElement.scrollWidth") <= look.width, "something sticks out"
    assert await page.evaluate("document.documentElement.lang") == look.language
    await page.evaluate(AXE)
    assert await page.evaluate(RUN) == []
    if SHOTS:
        taken = await page.screenshot(full_page=name.startswith("queue"))
        # Few colours are used, and few are kept: a tenth of the size.
        picture = Image.open(io.BytesIO(taken)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        narrow = "-320" if look.width == 320 else ""
        spoken = "" if look.language == "en" else f"-{look.language}"
        picture.save(Path(SHOTS) / f"{name}-{look.colours}{narrow}{spoken}.png", optimize=True)
