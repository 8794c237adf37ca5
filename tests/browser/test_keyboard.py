"""Without a mouse: every step is a key, and one always sees where one is."""

from __future__ import annotations

import asyncio

from playwright.async_api import FileChooser, Page, expect

from browser.conftest import Invoice, OpenPage
from support.stack import Stack

# What the focused element, or the label that stands for it, shows.
RING = """() => {
    const focused = document.activeElement;
    const shown = focused.matches("input[type=file]") ? focused.nextElementSibling : focused;
    const style = getComputedStyle(shown);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
}"""


async def tab_to(page: Page, name: str) -> None:
    """Press Tab until the thing of that name has the focus, seeing where it is at every step."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        label = await page.evaluate(
            "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
        )
        if label == "":
            continue
        assert await page.evaluate(RING), f"nothing shows that {label!r} has the focus"
        if name.lower() in label.lower():
            return
    raise AssertionError(f"Tab never reached {name!r}")


async def test_from_upload_to_cancel(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    # Listened for from the start: a browser on a busy machine may open its own dialog before it hears that we want it.
    choosing: asyncio.Future[FileChooser] = asyncio.get_running_loop().create_future()
    page.once("filechooser", lambda chooser: choosing.set_result(chooser))
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await tab_to(page, "PDF files")
    await page.keyboard.press("Enter")
    await (await choosing).set_files([invoice("a.pdf"), invoice("b.pdf")])
    await expect(page.get_by_role("button", name="Convert 2 files")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(page.get_by_role("button", name="Remove b.pdf")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Remove a.pdf")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/queue")
    await tab_to(page, "Cancel a.pdf")
    await page.keyboard.press("Enter")
    await expect(page.locator(".state")).to_have_text("Cancelled")
    await expect(page.get_by_role("button", name="Retry a.pdf")).to_be_focused()


async def test_every_control_of_a_queue_can_be_reached(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    await page.get_by_role("button", name="Try with a sample invoice").click()
    await page.wait_for_url("**/queue")
    for name in ("Upload more", "1 Total", "0 Failed", "Find by name", "Copy the job id", "Cancel", "Auto", "Dark"):
        await tab_to(page, name)
