"""Everything works without JavaScript: forms, links, and a link to look again."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Page, expect

from browser.conftest import Invoice, OpenPage, Upload
from browser.states import FINDINGS, failure
from browser.test_review import in_doubt
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import eventually
from support.stack import Stack


async def send(page: Page, *files: Path) -> None:
    await page.set_input_files("#files", list(files))
    await page.get_by_role("button", name="Convert").click()


async def test_upload_convert_and_download(working: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(working, java_script_enabled=False)
    await send(page, invoice("a.pdf"), invoice("b.pdf"))
    await page.wait_for_url("**/queue")
    await expect(page.locator(".job h2")).to_have_text(["b.pdf", "a.pdf"])

    async def done() -> bool:
        again = page.get_by_role("link", name="Reload for updates")
        if not await again.count():
            return True
        await again.click()
        return False

    await eventually(done, within=60, every=0.3, what="both are ready")
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download a.pdf").click()
    assert (await downloading.value).suggested_filename.startswith("a-")
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download all").click()
    assert (await downloading.value).suggested_filename == "waybill-results.zip"


async def test_a_refused_file_is_named_and_the_others_go_on(
    still: Stack, open_page: OpenPage, invoice: Invoice, tmp_path: Path
) -> None:
    page = await open_page(still, java_script_enabled=False, expected=("422",))
    (tmp_path / "notes.txt").write_text("notes")
    await send(page, invoice("good.pdf"), tmp_path / "notes.txt")
    await expect(page.get_by_role("alert")).to_contain_text("notes.txt: This file's name does not end in")
    await expect(page.get_by_role("alert")).to_contain_text("1 file is being processed.")
    await page.get_by_role("alert").get_by_role("link", name="Go to the queue").click()
    await expect(page.locator(".job h2")).to_have_text("good.pdf")


async def test_stepping_in_keeps_the_filters(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still, java_script_enabled=False)
    job = await upload(page, "a.pdf")
    await page.goto("/queue?status=active&q=a.pdf")
    await page.get_by_role("button", name="Cancel a.pdf").click()
    await page.wait_for_url("**/queue?status=active&q=a.pdf")
    await expect(page.locator(".job")).to_have_count(0)
    await page.get_by_role("link", name="Total").click()
    await page.get_by_role("button", name="Retry a.pdf").click()
    await expect(page.locator(".state")).to_have_text("Waiting")
    await still.become(job, "failed", **failure("It does not add up.", FINDINGS))
    await page.get_by_role("link", name="Reload for updates").click()
    await page.get_by_text("2 things to look at").click()
    await expect(page.get_by_text(re.compile("Line 213"))).to_be_visible()
    await expect(page.get_by_role("button", name="Copy the job id")).to_have_count(0)


async def test_the_sample_search_and_colours(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, java_script_enabled=False)
    await page.get_by_role("button", name="Try with a sample invoice").click()
    await page.get_by_role("searchbox").fill("sample")
    await page.get_by_role("button", name="Find").click()
    await page.wait_for_url("**/queue?q=sample")
    await expect(page.locator(".job h2")).to_have_text("sample-invoice.pdf")
    await page.get_by_role("button", name="Dark").click()
    await page.wait_for_url("**/queue?q=sample")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_a_result_in_doubt_is_approved(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working, java_script_enabled=False)
    job = await in_doubt(page, working, print_invoice(make_invoice(532, 70), REFERENCE))
    await page.goto("/queue?status=needs_review")
    await page.get_by_role("link", name="Check faktur.pdf").click()
    await page.get_by_role("link", name="Buyer", exact=True).click()
    await expect(page).to_have_url(re.compile("#v-buyer_name$"))
    await page.get_by_role("button", name="Looks right").click()
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download").first.click()
    assert (await downloading.value).suggested_filename == f"faktur-{job}-r0.xml"
