"""Choosing, dropping and sending files: told early what is wrong, sent in few requests, and patient."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import FilePayload, Route, expect

from browser.conftest import Invoice, MakeStack, OpenPage
from support.stack import Stack
from support.workbooks import packed, sheet, workbook_parts
from waybill.files import FileType


async def test_choose_look_over_remove_and_send(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    convert = page.get_by_role("button", name="Convert")
    await expect(convert).to_be_hidden()
    await page.set_input_files("#files", [invoice("a.pdf"), invoice("b.pdf")])
    await page.set_input_files("#files", [invoice("c.pdf")])
    await expect(page.locator(".file .name")).to_have_text(["a.pdf", "b.pdf", "c.pdf"])
    await page.get_by_role("button", name="Remove b.pdf").click()
    await expect(page.get_by_role("status")).to_have_text("b.pdf removed")
    await page.get_by_role("button", name="Convert 2 files").click()
    await page.wait_for_url("**/queue")
    await expect(page.locator(".job h2")).to_have_text(["c.pdf", "a.pdf"])


async def test_files_can_be_dropped_anywhere(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    content = list(invoice().read_bytes())
    drop = """([target, kind, bytes]) => {
        const carried = new DataTransfer();
        carried.items.add(new File([new Uint8Array(bytes)], "dropped.pdf", { type: "application/pdf" }));
        document.querySelector(target).dispatchEvent(
            new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
    }"""
    await page.evaluate(drop, ["footer", "dragenter", content])
    await expect(page.locator("body.over")).to_be_visible()
    await page.evaluate(drop, ["footer", "drop", content])
    await expect(page.locator("body.over")).to_have_count(0)
    await expect(page.locator(".file .name")).to_have_text("dropped.pdf")
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator(".job h2")).to_have_text("dropped.pdf")


async def test_what_cannot_be_sent_is_said_before_sending(
    still: Stack, open_page: OpenPage, invoice: Invoice, tmp_path: Path
) -> None:
    page = await open_page(still)
    files = {"notes.txt": b"notes", "fake.pdf": b"no PDF at all", "fake.xlsx": b"no workbook", "empty.pdf": b""}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    large = tmp_path / "large.pdf"
    with large.open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    await page.set_input_files("#files", [tmp_path / name for name in files] + [large])
    await expect(page.locator(".why")).to_have_text(
        [
            "This is neither a PDF nor XML, a workbook or a CSV file.",
            "This file's content is not what its name says.",
            "This file's content is not what its name says.",
            "This file is empty.",
            "This file is larger than 50 MB.",
        ]
    )
    await expect(page.get_by_role("button", name="Convert")).to_be_disabled()
    await page.set_input_files("#files", [invoice("good.pdf")])
    await expect(page.get_by_role("button", name="Convert 1 file")).to_be_enabled()


async def test_a_workbook_without_a_mapping_that_reads_it_stays_with_the_advice(
    still: Stack, open_page: OpenPage
) -> None:
    page = await open_page(still)
    book = packed(workbook_parts({"Blatt 1": sheet([["Summe", 37.05]])}))
    chosen: list[FilePayload] = [
        {"name": "may.xlsx", "mimeType": FileType.XLSX.media_type, "buffer": book},
        {"name": "june.csv", "mimeType": "text/csv", "buffer": b"Summe;37,05"},
    ]
    await page.set_input_files("#files", chosen)
    await page.get_by_role("button", name="Convert 2 files").click()
    for number in range(2):
        await expect(page.locator(".why").nth(number)).to_contain_text("Please choose the mapping that reads it.")


async def test_what_the_server_refuses_stays_with_its_reason(
    still: Stack, open_page: OpenPage, invoice: Invoice
) -> None:
    page = await open_page(still)
    content = invoice().read_bytes()
    await page.set_input_files("#files", {"name": "odd.pdf", "mimeType": "text/html", "buffer": content})
    await page.set_input_files("#files", {"name": "good.pdf", "mimeType": "application/pdf", "buffer": content})
    await page.get_by_role("button", name="Convert 2 files").click()
    await expect(page.locator(".file.bad .name")).to_have_text("odd.pdf")
    await expect(page.locator(".file.bad .why")).to_contain_text("Please upload the document itself")
    await expect(page.locator(".file.sent .name")).to_have_text("good.pdf")
    await page.get_by_role("button", name="Go to the queue").click()
    await expect(page.locator(".job h2")).to_have_text("good.pdf")


async def test_many_files_go_in_few_requests(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    await page.set_input_files("#files", [invoice(f"{number:02}.pdf", lines=1) for number in range(45)])
    await page.get_by_role("button", name="Convert 45 files").click()
    await page.wait_for_url("**/queue")
    await expect(page.locator("#show-all b")).to_have_text("45")
    assert sent == [f"{still.url}/api/uploads"] * 3


async def test_asked_to_wait_it_waits_and_goes_on(make_stack: MakeStack, open_page: OpenPage, invoice: Invoice) -> None:
    stack = await make_stack(WAYBILL_API_UPLOADS_PER_MINUTE="20")
    page = await open_page(stack, expected=("429",))
    while (await page.request.post("/api/uploads", data="")).status != 429:
        pass
    await page.set_input_files("#files", [invoice("patient.pdf")])
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator("#state")).to_have_text(re.compile(r"A short pause: continuing in \d+ s"))
    await expect(page.get_by_role("status")).to_contain_text("continue automatically")
    await page.wait_for_url("**/queue")
    await expect(page.locator(".job h2")).to_have_text("patient.pdf")


async def test_a_broken_connection_loses_nothing(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still, expected=("ERR_CONNECTION_RESET",))
    broken: list[Route] = []

    async def breaks_once(route: Route) -> None:
        if broken:
            await route.continue_()
            return
        broken.append(route)
        await route.abort("connectionreset")

    await page.route("**/api/uploads", breaks_once)
    await page.set_input_files("#files", [invoice("again.pdf")])
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator("#state")).to_have_text(
        "The connection was lost. Your files are still here: please try again."
    )
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator(".job h2")).to_have_text("again.pdf")


async def test_the_sample_invoice_and_its_reuse(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still)
    await page.get_by_role("button", name="Try with a sample invoice").click()
    await page.wait_for_url("**/queue")
    await expect(page.locator(".job h2")).to_have_text("sample-invoice.pdf")
    await expect(page.locator(".chip")).to_have_count(0)
    await page.get_by_role("link", name="Upload more").click()
    await page.get_by_role("button", name="Try with a sample invoice").click()
    await expect(page.locator(".job")).to_have_count(1)
    await expect(page.locator(".chip")).to_have_text("Reused result")
    shown = await page.request.get("/sample.pdf")
    assert (await shown.body()).startswith(b"%PDF-")


async def test_the_chosen_mapping_is_used(still: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(still)
    await page.get_by_label("Convert as").select_option("en16931_cii")
    await page.set_input_files("#files", [invoice()])
    await page.get_by_role("button", name="Convert 1 file").click()
    await expect(page.locator(".job .tag")).to_have_text("en16931_cii")
