"""Names, errors and documents are text, whatever they try to be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Page, expect

from browser.conftest import OpenPage, Upload
from browser.states import failure
from support.stack import Stack

ATTACKS = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    '"><svg onload=window.hacked=1>',
    "' onmouseover='window.hacked=1",
    "{{ 7 * 7 }}${7*7}",
    "</title></textarea><iframe srcdoc='<script>parent.hacked=1</script>'>",
]


async def unharmed(page: Page) -> bool:
    """No script ran, and none could have: nothing was made from the text."""
    made = "document.querySelectorAll('#queue script, #queue img, #queue iframe, #list script, #list img').length"
    return bool(await page.evaluate(f"window.hacked === undefined && {made} === 0"))


@pytest.mark.parametrize("attack", ATTACKS)
async def test_names_errors_and_findings_are_text(
    still: Stack, open_page: OpenPage, upload: Upload, attack: str
) -> None:
    page = await open_page(still)
    name = f"{attack.replace('/', '')}.pdf"
    job = await upload(page, name)
    await still.become(job, "failed", **failure(attack, [{"message": attack, "page": attack}, {"message": "b"}]))
    await page.goto("/queue")
    row = page.locator(f"#job-{job}")
    shown = await row.locator("h2").inner_text()
    assert shown.endswith(".pdf")
    await expect(row.locator(".wrong > p")).to_have_text(attack)
    await row.locator("summary").click()
    await expect(row.get_by_role("listitem").first).to_have_text(attack)
    assert await unharmed(page)
    # The same when it arrives live.
    await still.become(job, "queued", error_message=None, error_code=None)
    await expect(row.locator(".state")).to_have_text("Waiting")
    await still.become(job, "failed", **failure(attack))
    await expect(row.locator(".wrong > p")).to_have_text(attack)
    assert await unharmed(page)


async def test_names_are_text_before_they_are_sent(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still)
    content = b"%PDF-1.7 " + b" " * 64
    for attack in ATTACKS:
        await page.set_input_files(
            "#files", {"name": f"{attack}.pdf", "mimeType": "application/pdf", "buffer": content}
        )
    await expect(page.locator(".file")).to_have_count(len(ATTACKS))
    assert await unharmed(page)


async def test_what_is_searched_for_is_text(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    await upload(page, "a.pdf")
    await page.goto("/queue")
    for attack in ATTACKS:
        await page.get_by_role("searchbox").fill(attack)
        await page.get_by_role("searchbox").press("Enter")
        await expect(page.locator(".empty")).to_contain_text(f"No file name contains “{attack}”.")
        await expect(page.get_by_role("searchbox")).to_have_value(attack)
        assert await unharmed(page)


async def test_odd_findings_are_left_out(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    odd: dict[str, list[Any]] = {
        "findings": [None, 7, "text", {"message": 8}, {"message": "The only one."}, [], {"page": 3}]
    }
    await still.become(job, "failed", error_code="GW_4XX", error_message="No.", error_detail=json.dumps(odd))
    await page.goto("/queue")
    await page.get_by_text("1 thing to look at").click()
    await expect(page.locator(".wrong li")).to_have_text(["The only one."])


async def test_an_inline_script_would_not_run(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/queue", expected=("Content Security Policy", "404"))
    await page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = 1'>");
        }"""
    )
    await page.wait_for_load_state("networkidle")
    assert await page.evaluate("window.hacked === undefined")
