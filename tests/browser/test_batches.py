"""Batches as a person meets them: send a ZIP, watch it, look at files, retry; after a reload, and with many files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import Page, Route, expect

from browser.batch_states import LOCKED, end, fill, many, payload, send, zipped
from browser.conftest import Invoice, OpenPage
from browser.test_keyboard import tab_to
from support.patience import eventually
from support.stack import Stack

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def test_from_a_zip_to_its_results(working: Stack, open_page: OpenPage, invoice: Invoice) -> None:
    page = await open_page(working, "/batches")
    content = zipped(
        ("invoices/may.pdf", invoice("may.pdf").read_bytes()),
        ("letters/hello.txt", b"Dear reader,\n\nhello."),
        ("letters/broken.bin", b"%PDF-1.4\nbroken"),
        ("scans/photo.png", PNG),
    )
    await page.set_input_files("#zip", payload("May.zip", content))
    await page.get_by_label("Name", exact=True).fill("Accounting May")
    await page.get_by_role("button", name="Convert all PDFs").click()
    await expect(page.get_by_label("Pattern of file names")).to_have_value("*.pdf")
    await page.get_by_label("Mapping", exact=True).select_option("pt_simon_invoice_v1")
    await page.get_by_role("button", name="Send the ZIP").click()
    await page.wait_for_url("**/batches/*-*")
    await expect(page.locator("h1")).to_have_text("Accounting May")
    await expect(page.locator("#top .state")).to_have_text("With errors", timeout=60_000)
    await expect(page.locator("#show-ready b")).to_have_text("2")
    await expect(page.locator("tr.entry .base")).to_have_text(["broken.bin", "photo.png", "may.pdf", "hello.txt"])
    await expect(page.locator("tr.failed .said").last).to_have_text("This is a picture. Pictures are not read.")
    await expect(page.get_by_role("link", name="Review may.pdf")).to_have_attribute("href", re.compile("^/review/"))
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download the XML of may.pdf").click()
    assert b"<" in Path(await (await downloading.value).path()).read_bytes()[:10]

    link = page.locator("a[data-file]", has_text="hello.txt")
    await link.click()
    await expect(page.locator("#look")).to_be_visible()
    shown = await page.locator("#look pre").text_content()
    assert "hello." in json.dumps(json.loads(shown or ""))
    await page.keyboard.press("Escape")
    await expect(link).to_be_focused()

    await page.get_by_role("button", name="Retry 2 files").click()
    await expect(page.locator("tr.failed", has_text="broken.bin")).to_contain_text("1 retry", timeout=60_000)
    await expect(page.locator("#top .state")).to_have_text("With errors")

    await page.get_by_role("link", name="Summary").click()
    await expect(page.locator(".figures .ready dd")).to_have_text("2")
    await expect(page.locator("#s-totals")).to_be_visible()
    await page.get_by_role("link", name="Show the files that failed").click()
    await expect(page.locator("tr.entry .base")).to_have_text(["broken.bin", "photo.png"])
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download all").click()
    assert (await downloading.value).suggested_filename.endswith(".zip")


async def test_an_upload_goes_on_after_a_reload(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/batches")
    held: list[Route] = []

    async def hold_the_first(route: Route) -> None:
        if held:
            await route.continue_()
        else:
            held.append(route)

    await page.route("**/api/batches", hold_the_first)
    await page.set_input_files("#zip", payload("Long.zip", zipped(("a.txt", b"a" * 100))))
    await page.get_by_role("button", name="Add a rule").click()
    await page.get_by_label("Pattern of file names").fill("*.xml")
    await page.get_by_label("Name", exact=True).fill("A long one")
    await page.get_by_role("button", name="Send the ZIP").click()
    await expect(page.locator("#file progress")).to_be_visible()
    await eventually(lambda: _is_kept(page), what="the browser keeps the ZIP")
    await page.reload()
    await expect(page.locator("#interrupted")).to_contain_text("Sending Long.zip")
    await page.wait_for_url("**/batches/*-*")
    await expect(page.locator("h1")).to_have_text("A long one")
    await expect(page.locator("#top .tag")).to_contain_text(["Long.zip", "*.xml"])
    await page.goto("/batches")
    await expect(page.locator(".batch")).to_have_count(1)
    await expect(page.locator("#interrupted")).to_be_hidden()
    assert not await _is_kept(page)


async def test_an_upload_whose_file_was_not_kept_says_so(still: Stack, open_page: OpenPage) -> None:
    """Browsers may refuse to keep a large file; then the page says which one to choose again."""
    page = await open_page(still, "/batches")
    owner = await page.locator("#upload").get_attribute("data-owner")
    record = {"id": "1", "owner": owner, "name": "Lost.zip", "bytes": 5_000_000, "title": "Lost", "rules": ""}
    await page.evaluate(_STORE, record)
    await page.reload()
    await expect(page.locator("#interrupted")).to_contain_text("Choose it again to send it.")
    await page.set_input_files("#zip", payload("Lost.zip", zipped(("a.txt", b"a"))))
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Lost")
    await page.get_by_role("button", name="Send the ZIP").click()
    await page.wait_for_url("**/batches/*-*")
    # Somebody else, who uses the same browser, is not told and sends nothing.
    await page.goto("/batches")
    await page.evaluate(_STORE, {**record, "owner": "another"})
    await page.reload()
    await eventually(lambda: _is_forgotten(page), what="the record of another owner is removed")
    await expect(page.locator("#interrupted")).to_be_hidden()


_STORE = """async (record) => {
    const { src } = document.querySelector("script[src$='upload.js']");
    const { keep } = await import(src.replace("upload", "kept_upload"));
    await keep({ ...record, begun: Date.now(), file: null });
}"""

_KEPT = """() => new Promise((done) => {
    const request = indexedDB.open("waybill-batches", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("upload");
    request.onsuccess = () => {
        const found = request.result.transaction("upload").objectStore("upload").get("current");
        found.onsuccess = () => {
            request.result.close();
            done(found.result ? { file: Boolean(found.result.file) } : null);
        };
    };
})"""


async def _is_kept(page: Page) -> bool:
    found = await page.evaluate(_KEPT)
    return bool(found and found["file"])


async def _is_forgotten(page: Page) -> bool:
    return await page.evaluate(_KEPT) is None


async def test_what_is_no_zip_is_said_before_sending(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/batches")
    await page.set_input_files("#zip", payload("fake.zip", b"no ZIP at all"))
    await expect(page.locator("#file .why")).to_have_text("This is not a ZIP.")
    await expect(page.get_by_role("button", name="Send the ZIP")).to_be_hidden()
    await page.set_input_files("#zip", payload("empty.zip", b""))
    await expect(page.locator("#file .why")).to_have_text("This file is empty.")


async def test_ten_thousand_files_scroll_smoothly(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/batches")
    batch = await send(page, "Everything.zip")
    await fill(still, batch, many(10_000))
    await end(still, batch)
    await page.goto(f"/batches/{batch}")
    await expect(page.locator("tr.entry").first).to_have_class(re.compile("failed"))
    assert await page.locator("#files").get_attribute("aria-rowcount") == "10001"
    most = 60
    for share in (0.2, 0.9, 0.3):
        await page.evaluate("(share) => scrollTo(0, document.documentElement.scrollHeight * share)", share)
        await expect(page.locator("tr.entry .base").first).to_be_visible()
        assert await page.locator("tr").count() < most
        assert len(await page.evaluate(_HEIGHTS)) == 1, "the place of a row follows from its number"
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = page.locator("tr[aria-rowindex='10001'] .base")
    await expect(last).to_have_text(re.compile("document 099"))
    assert await page.locator("tr").count() < most
    assert await page.evaluate(_SCROLL) < most, "however far one scrolls"
    await page.evaluate("scrollTo(0, 0)")
    await expect(page.locator("tr[aria-rowindex='2'] .base")).to_be_visible()

    await page.get_by_label("Type").select_option("text")
    await page.get_by_label("Find by path").fill("scans")
    await page.get_by_role("button", name="Find").click()
    await page.wait_for_url("**type=text&q=scans")
    await expect(page.locator("tr.entry .folder").first).to_have_text("scans/")
    # What follows the batch does not know how many these are, and says nothing about it.
    async with page.expect_response("**/rows?type=text&q=scans"):
        await still.sql("UPDATE batches SET changed = pg_current_xact_id() WHERE id = $1", batch)
        await still.sql("SELECT waybill_tell(owner) FROM batches WHERE id = $1", batch)
    await expect(page.locator("#none")).to_be_hidden()
    await expect(page.locator("tr.entry .folder").first).to_have_text("scans/")


_HEIGHTS = """() => [...new Set([...document.querySelectorAll("tr.entry")].map(
    (row) => row.getBoundingClientRect().height))]"""

_SCROLL = """async () => {
    let most = 0;
    for (let step = 0; step < 60; step += 1) {
        scrollBy(0, -900);
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll("tr").length);
    }
    return most;
}"""


async def test_the_page_follows_a_batch_and_leaves_the_reader_alone(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/batches", expected=("404",))
    batch = await send(page, "Slow.zip")
    await page.goto(f"/batches/{batch}")
    await expect(page.locator("#top .state")).to_have_text("Waiting")
    await expect(page.locator("#top .note")).to_contain_text("No worker serves")
    await fill(still, batch, [(f"{each}.txt", "text", "queued", None) for each in range(30)])
    await still.sql("SELECT waybill_tell(owner) FROM batches WHERE id = $1", batch)
    await expect(page.locator("#show-active b")).to_have_text("30")
    await expect(page.locator("tr.entry").first).to_be_visible()
    await page.get_by_role("link", name="3.txt", exact=True).focus()
    await still.sql(
        "UPDATE batch_files SET status = 'failed', error = $2::text::jsonb WHERE batch_id = $1 AND number = 7",
        batch,
        json.dumps(LOCKED),
    )
    await end(still, batch)
    await expect(page.locator("tr.entry .base").first).to_have_text("7.txt")
    await expect(page.get_by_role("status")).to_contain_text("1 file failed")
    assert await page.evaluate("document.activeElement.closest('tr') !== null"), "the focus stays in the table"
    # A refusal is told: the janitor has removed the file meanwhile, and nobody has told the page.
    await expect(page.get_by_role("button", name="Retry 1 file")).to_be_visible()
    await still.sql("UPDATE batch_files SET source_key = NULL WHERE batch_id = $1", batch)
    await page.get_by_role("button", name="Retry 1 file").click()
    await expect(page.get_by_role("status")).to_contain_text("None of the files that failed can be tried again")


async def test_with_the_keyboard_only(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/batches")
    await page.set_input_files("#zip", payload("Keys.zip", zipped(("a.txt", b"keys"))))
    await expect(page.get_by_role("button", name="Send the ZIP")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/batches/*-*")
    batch = page.url.rpartition("/")[2]
    await fill(still, batch, [("a.txt", "text", "failed", None), ("b.txt", "text", "complete", None)])
    await end(still, batch)
    await expect(page.locator("tr.entry")).to_have_count(2)
    await expect(page.get_by_role("button", name="Retry 1 file")).to_be_visible()
    for name in ("All batches", "Retry 1 file", "Delete", "Summary", "2 Files", "Type", "Find by path", "a.txt"):
        await tab_to(page, name)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.goto("/batches")
    await tab_to(page, "Delete Keys")
    await page.keyboard.press("Enter")
    await tab_to(page, "Yes, delete")
    await page.keyboard.press("Enter")
    await expect(page.locator(".batch")).to_have_count(0)
    await expect(page.get_by_role("heading", name="No batches yet")).to_be_visible()


async def test_without_scripts(still: Stack, open_page: OpenPage, tmp_path: Path) -> None:
    page = await open_page(still, "/batches", java_script_enabled=False, expected=("422",))
    (tmp_path / "notes.zip").write_bytes(b"no ZIP")
    await page.set_input_files("#zip", tmp_path / "notes.zip")
    await page.get_by_role("button", name="Send the ZIP").click()
    await expect(page.get_by_role("alert")).to_contain_text("This file is not a ZIP.")
    (tmp_path / "good.zip").write_bytes(zipped(("a.txt", b"good")))
    await page.set_input_files("#zip", tmp_path / "good.zip")
    await page.get_by_label("Convert files by a mapping").select_option(
        label="All PDFs, by the mapping that recognises them"
    )
    await page.get_by_role("button", name="Send the ZIP").click()
    await page.wait_for_url("**/batches/*-*")
    await expect(page.locator("#top .tag")).to_contain_text(["*.pdf → automatic"])
    batch = page.url.rpartition("/")[2]
    await fill(still, batch, many(450))
    await page.get_by_role("link", name="Reload for updates").click()
    await expect(page.locator("tr.entry")).to_have_count(200)
    await page.get_by_role("link", name="Next files").click()
    await page.get_by_role("link", name="Next files").click()
    await expect(page.locator("tr.entry")).to_have_count(50)
    await page.locator("tr.entry .path a").first.click()
    await expect(page.locator(".known")).to_be_visible()
    await page.go_back()
    await end(still, batch)
    await page.get_by_role("link", name="Summary").click()
    await expect(page.locator(".bars").first).to_be_visible()
    await page.locator(".sure summary").click()
    await page.get_by_role("button", name="Yes, delete").click()
    await page.wait_for_url("**/batches")
    await expect(page.locator(".batch")).to_have_count(0)
