"""E-invoices on the review page: what the page says otherwise is marked on it, and an XML needs no page at all."""

from __future__ import annotations

import io
import os
from importlib.resources import files
from pathlib import Path

import pypdfium2
import pytest
from playwright.async_api import FilePayload, Page, expect

from browser.conftest import OpenPage
from support.patience import eventually
from support.stack import Stack

GOLDEN = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()
SAMPLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "invoices" / "facturx" / "EN16931_Einfach.pdf"


def with_another_number() -> bytes:
    """The sample, whose embedded invoice has another number than its first page."""
    document = pypdfium2.PdfDocument(SAMPLE)
    xml = bytes(document.get_attachment(0).get_data())
    assert xml.count(b"<ram:ID>471102</ram:ID>") == 1
    document.get_attachment(0).set_data(xml.replace(b"<ram:ID>471102</ram:ID>", b"<ram:ID>471103</ram:ID>"))
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


async def converted(page: Page, content: bytes, name: str, mapping: str) -> str:
    file: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    answer = await page.request.post("/api/upload", multipart={"file": file, "mapping": mapping})
    assert answer.ok, await answer.text()
    job = str((await answer.json())["job"]["id"])

    async def ended() -> bool:
        found = await (await page.request.get(f"/api/jobs/{job}")).json()
        assert found["status"] != "failed", found["error"]
        return bool(found["status"] == "complete")

    await eventually(ended, within=90, every=0.1, what="it is complete")
    return job


async def kept(page: Page, name: str) -> None:
    """A picture for people who want to look, where they say so."""
    if folder := os.environ.get("WAYBILL_TEST_PICTURES"):
        await page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.mark.skipif(not SAMPLE.exists(), reason="there is no ../shared/data beside the repository")
async def test_a_difference_is_marked_on_the_page(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    job = await converted(page, with_another_number(), "rechnung.pdf", "en16931_ubl")
    await page.goto(f"/review/{job}")
    problem = page.locator("#problems").get_by_role("link")
    await expect(problem).to_have_text("number: the page says 471102, the embedded invoice says 471103")
    marked = page.locator('[id="b-number"]')
    await expect(marked).to_have_class("wrong doubt")
    await expect(page.locator('[id="b-gross"]')).not_to_have_class("wrong doubt")
    await kept(page, "difference")
    await page.get_by_text("1 attachment").click()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="factur-x.xml").click()
    assert (await download.value).suggested_filename == "factur-x.xml"


async def test_an_xml_is_reviewed_without_pages(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    job = await converted(page, GOLDEN, "rechnung.xml", "en16931_ubl")
    await page.goto(f"/review/{job}")
    await expect(page.locator("#paper")).to_contain_text("This document has no pages")
    await expect(page.locator("#of-lines")).to_be_visible()
    await kept(page, "xml")
    answer = await page.request.get(f"/api/jobs/{job}/pages/1")
    assert answer.status == 422
    assert (await (await page.request.get(f"/api/jobs/{job}/attachments")).json()) == {"attachments": []}


async def test_the_upload_page_takes_xml(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    chosen: list[FilePayload] = [
        {"name": "a.xml", "mimeType": "text/xml", "buffer": GOLDEN},
        {"name": "b.xml", "mimeType": "text/xml", "buffer": b"no xml"},
        {"name": "c.txt", "mimeType": "text/plain", "buffer": b"text"},
    ]
    await page.locator("#files").set_input_files(chosen)
    rows = page.locator("#list > *")
    await expect(rows.nth(1)).to_contain_text("content is not what its name says")
    await expect(rows.nth(2)).to_contain_text("neither a PDF nor XML")
    await expect(page.locator("#go button")).to_be_enabled()
