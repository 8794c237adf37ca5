"""A bookkeeper's morning, with everything real: twenty invoices in, twenty XML files out."""

from __future__ import annotations

import zipfile
from decimal import Decimal
from pathlib import Path

import pytest
from lxml import etree
from playwright.async_api import expect

from browser.conftest import Invoice, MakeStack, OpenPage
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_subtotal
from support.stack import Stack

SOON = 90_000


async def test_twenty_invoices(working: Stack, open_page: OpenPage, invoice: Invoice, tmp_path: Path) -> None:
    page = await open_page(working)
    await page.set_input_files("#files", [invoice(f"Faktur {number:02}.pdf", lines=number) for number in range(1, 21)])
    await page.get_by_role("button", name="Convert 20 files").click()
    await page.wait_for_url("**/queue")
    await expect(page.locator("#show-ready b")).to_have_text("20", timeout=SOON)
    await expect(page.get_by_role("status")).to_have_text("All done: 20 ready")
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download all").click()
    await (await downloading.value).save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert len(archive.namelist()) == 20
        for name in archive.namelist():
            assert etree.fromstring(archive.read(name)).tag == "TaxInvoiceBulk"
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download Faktur 07.pdf").click()
    download = await downloading.value
    assert download.suggested_filename.startswith("Faktur 07-")
    goods = etree.parse(await download.path()).findall(".//GoodService")
    assert len(goods) == 7


async def test_a_result_is_saved_and_never_shown(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    await page.get_by_role("button", name="Try with a sample invoice").click()
    link = page.get_by_role("link", name="Download sample-invoice.pdf")
    await expect(link).to_be_visible(timeout=SOON)
    answer = await page.request.get(await link.get_attribute("href") or "")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    again = await open_page(working, expected=("403",))
    problem = await again.goto(await link.get_attribute("href") or "")
    assert problem is not None
    assert problem.status == 403
    await expect(again.get_by_role("heading", level=1)).to_have_text("Not allowed")


async def test_a_document_at_fault_says_what_to_look_at(working: Stack, open_page: OpenPage, tmp_path: Path) -> None:
    page = await open_page(working)
    wrong = tmp_path / "wrong.pdf"
    wrong.write_bytes(print_invoice(wrong_subtotal(make_invoice(31, 4), off=Decimal(1000)), REFERENCE))
    await page.set_input_files("#files", [wrong])
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator(".state")).to_have_text("Failed", timeout=SOON)
    await expect(page.locator(".wrong > p")).not_to_be_empty()
    if await page.locator("summary").count():
        await page.locator("summary").click()
        await expect(page.locator(".wrong li").first).to_be_visible()


@pytest.mark.heavy
async def test_the_converter_goes_away_and_comes_back(
    make_stack: MakeStack, open_page: OpenPage, invoice: Invoice
) -> None:
    stack = await make_stack(
        "worker",
        WAYBILL_BREAKER_MIN_CALLS="1",
        WAYBILL_BREAKER_OPEN="3",
    )
    page = await open_page(stack)
    await page.set_input_files("#files", [invoice("a.pdf"), invoice("b.pdf")])
    await page.get_by_role("button", name="Convert 2 files").click()
    await page.wait_for_url("**/queue")
    await expect(page.locator(".hold")).to_contain_text("Nothing is lost", timeout=SOON)
    await expect(page.locator("#show-active b")).to_have_text("2")
    stack.start("gateway")
    await expect(page.locator("#show-ready b")).to_have_text("2", timeout=SOON)
    await expect(page.locator(".hold")).to_have_count(0, timeout=SOON)
