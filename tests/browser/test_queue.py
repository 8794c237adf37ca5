"""The queue says how things stand, lives with them, and lets its reader step in."""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from playwright.async_api import Page, Route, expect

from browser.conftest import OpenPage, Upload
from browser.states import FINDINGS, LONG, all_states, failure
from support.stack import Stack
from waybill.security import keys


def row(page: Page, job_id: str) -> Any:
    return page.locator(f"#job-{job_id}")


async def test_every_state_has_its_words(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    ids = await all_states(page, still, upload)
    await page.goto("/queue")
    words = {
        "waiting": "Waiting",
        "retrying": "Waiting",
        "running": "Converting…",
        "starting": "Converting…",
        "stopping": "Stopping…",
        "ready": "Ready",
        "reused": "Ready",
        "long": "Ready",
        "doubtful": "Please check",
        "failed": "Failed",
        "tired": "Failed",
        "cancelled": "Cancelled",
        "expired": "Expired",
    }
    for what, word in words.items():
        await expect(row(page, ids[what]).locator(".state")).to_have_text(word)
    await expect(row(page, ids["retrying"])).to_contain_text(re.compile("Retry in 4 min"))
    await expect(row(page, ids["reused"])).to_contain_text("Reused result")
    await expect(row(page, ids["tired"])).to_contain_text("The converter took too long.")
    await expect(row(page, ids["running"]).get_by_role("progressbar")).to_have_attribute("value", "45")
    await expect(row(page, ids["long"]).locator("h2")).to_have_attribute("title", LONG)
    buttons = {
        "waiting": "Cancel",
        "running": "Cancel",
        "ready": r"Review\s*Download\s*Pin",
        "failed": r"Review\s*Retry\s*Pin",
        "tired": r"Review\s*Retry\s*Pin",
        "cancelled": r"Retry\s*Pin",
        "expired": "Upload again",
        "stopping": "",
        "doubtful": r"Check\s*Pin",
    }
    for what, button in buttons.items():
        await expect(row(page, ids[what]).locator(".acts")).to_have_text(re.compile(rf"^\s*{button}\s*$"))
    fold = row(page, ids["failed"]).locator("details")
    await expect(fold.get_by_role("listitem").first).to_be_hidden()
    await fold.get_by_text("2 things to look at").click()
    await expect(fold.get_by_role("listitem").first).to_have_text(f"Page 7: {FINDINGS[0]['message']}")
    counts = {"all": "13", "active": "5", "ready": "3", "in-doubt": "1", "failed": "2"}
    for name, number in counts.items():
        await expect(page.locator(f"#show-{name} b")).to_have_text(number)


async def test_filters_and_search_are_in_the_address(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    await all_states(page, still, upload)
    await page.goto("/queue")
    await page.get_by_role("link", name="Failed").click()
    await page.wait_for_url("**/queue?status=failed")
    await expect(page.locator(".job")).to_have_count(2)
    await expect(page.locator("#show-failed")).to_have_attribute("aria-current", "true")
    await page.get_by_role("searchbox").fill("070004")
    await page.get_by_role("searchbox").press("Enter")
    await page.wait_for_url("**/queue?status=failed&q=070004")
    await expect(page.locator(".job h2")).to_have_text("Faktur 2508070004.pdf")
    await page.goto("/queue?q=nobody+is+called+so")
    await expect(page.locator(".empty")).to_contain_text("No file name contains “nobody is called so”.")
    await page.get_by_role("link", name="Show all").click()
    await expect(page.locator(".job")).to_have_count(13)


async def test_long_queues_have_pages(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    for number in range(3):
        await upload(page, f"{number}.pdf")
    await page.goto("/queue?limit=2")
    await expect(page.locator(".job h2")).to_have_text(["2.pdf", "1.pdf"])
    await page.get_by_role("link", name="Older").click()
    await expect(page.locator(".job h2")).to_have_text(["0.pdf"])
    await page.get_by_role("link", name="Newest").click()
    await expect(page.locator(".job h2")).to_have_text(["2.pdf", "1.pdf"])


async def test_what_happens_shows_without_reloading(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job, other = await upload(page, "a.pdf"), await upload(page, "b.pdf")
    await still.become(job, "failed", **failure("The totals do not add up.", FINDINGS))
    await page.goto("/queue")
    await page.evaluate("window.same = true")
    await row(page, job).locator("summary").click()
    await row(page, other).get_by_role("button", name="Cancel").focus()

    await still.become(other, "running", lease_owner=uuid.uuid4(), progress=0.1)
    await expect(row(page, other).locator(".state")).to_have_text("Converting…")
    await expect(row(page, other).get_by_role("button", name="Cancel")).to_be_focused()
    await upload(page, "c.pdf")
    await expect(page.locator(".job h2")).to_have_text(["c.pdf", "b.pdf", "a.pdf"])
    await still.become(other, "succeeded", lease_owner=None)
    await expect(row(page, other).locator(".state")).to_have_text("Ready")
    await expect(page.locator("#show-ready b")).to_have_text("1")
    await expect(page.get_by_role("status")).to_have_text("1 file in progress, 1 ready, 1 failed")
    await expect(row(page, job).locator("details")).to_have_attribute("open", "")
    assert await page.evaluate("window.same"), "the page was reloaded"


async def test_retry_and_cancel_in_place(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    await page.goto("/queue")
    await page.evaluate("window.same = true")
    await row(page, job).get_by_role("button", name="Cancel").click()
    await expect(row(page, job).locator(".state")).to_have_text("Cancelled")
    await row(page, job).get_by_role("button", name="Retry").click()
    await expect(row(page, job).locator(".state")).to_have_text("Waiting")
    await expect(row(page, job).get_by_role("button", name="Cancel")).to_be_focused()
    assert await page.evaluate("window.same"), "the page was reloaded"


async def test_what_is_pressed_counts_though_its_row_is_replaced(
    still: Stack, open_page: OpenPage, upload: Upload
) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    answered, held = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        answered.set()
        await held.wait()
        await route.fulfill(response=answer)

    await page.route("**/cancel", hold)
    await page.goto("/queue")
    await row(page, job).get_by_role("button", name="Cancel").click()
    await answered.wait()
    await expect(row(page, job).locator(".state")).to_have_text("Cancelled")  # the stream was faster
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/cancel")):
        held.set()
    await row(page, job).get_by_role("button", name="Retry").click()
    await expect(row(page, job).locator(".state")).to_have_text("Waiting")


async def test_what_comes_too_late_is_said(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still, expected=("409", "Response Status Error", "ERR_FAILED", "[object Event]"))
    job = await upload(page, "a.pdf")
    await page.route("**/api/stream", lambda route: route.abort())
    await page.goto("/queue")
    await still.become(job, "succeeded")
    await row(page, job).get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("status")).to_contain_text("Only jobs that wait or run can be cancelled")
    await expect(row(page, job).locator(".state")).to_have_text("Ready")


@pytest.mark.heavy
async def test_without_a_stream_it_asks_until_nothing_is_under_way(
    still: Stack, open_page: OpenPage, upload: Upload
) -> None:
    page = await open_page(still, expected=("ERR_FAILED", "[object Event]"))
    job = await upload(page, "a.pdf")
    await page.route("**/api/stream", lambda route: route.abort())
    asked: list[str] = []
    await page.goto("/queue")
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queue") else None)
    await still.become(job, "succeeded")
    await expect(row(page, job).locator(".state")).to_have_text("Ready")
    settled = len(asked)
    # The next question would come within five seconds.
    with pytest.raises(AssertionError):
        await expect(page.locator("#nothing-like-this")).to_be_visible(timeout=7000)
    assert len(asked) <= settled + 1, "one may have been on its way"


async def test_a_hidden_page_lets_go_and_catches_up(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    await page.goto("/queue")
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    await expect(page.locator("[sse-connect]")).to_have_count(1)
    await page.evaluate(hide, True)
    await expect(page.locator("[sse-connect]")).to_have_count(0)
    await still.become(job, "succeeded")
    await page.evaluate(hide, False)
    await expect(row(page, job).locator(".state")).to_have_text("Ready")


@pytest.mark.heavy
async def test_while_the_converter_is_on_hold_the_queue_says_so(
    still: Stack, open_page: OpenPage, upload: Upload
) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    await page.goto("/queue")
    await still.sql(
        "INSERT INTO breakers (name, state, open_until, reason) VALUES ('gateway', 'open', now() + '1 hour', 'down')"
        " ON CONFLICT (name) DO UPDATE SET state = 'open', open_until = now() + interval '1 hour'"
    )
    try:
        await expect(page.locator(".hold")).to_contain_text("The converter is having an issue.", timeout=40_000)
        await expect(row(page, job).locator(".state")).to_have_text("On hold")
    finally:
        await still.sql("UPDATE breakers SET state = 'closed', open_until = NULL WHERE name = 'gateway'")


async def test_the_id_is_copied_and_times_are_local(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still, permissions=["clipboard-read", "clipboard-write"], timezone_id="Asia/Jakarta")
    job = await upload(page, "a.pdf")
    await page.goto("/queue")
    await row(page, job).get_by_role("button", name="Copy the job id").click()
    await expect(page.get_by_role("status")).to_have_text("Job id copied")
    assert await page.evaluate("navigator.clipboard.readText()") == job
    time = row(page, job).locator("time")
    await expect(time).to_have_text("just now")
    local = await page.evaluate("(at) => new Date(at).getHours()", await time.get_attribute("datetime"))
    assert str(local % 12 or 12) in (await time.get_attribute("title") or "")


async def test_browsers_are_strangers_until_they_sign_in(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    connection = await asyncpg.connect(still.database_url)
    permissions = ["convert:read", "convert:write"]
    made = await keys.create(connection, tenant="acme", name="browser", permissions=permissions)
    await connection.close()
    # Signing in or out ends the page's stream, which htmx notes as an event.
    pages = [await open_page(still, expected=("401", "[object Event]")) for _ in range(2)]
    await upload(pages[0], "mine.pdf")
    await pages[1].goto("/queue")
    await expect(pages[1].get_by_role("heading", name="No invoices yet")).to_be_visible()

    await pages[0].get_by_role("link", name="Sign in").click()
    await pages[0].get_by_label("Key").fill("wb_nonsense")
    await pages[0].get_by_role("button", name="Sign in").click()
    await expect(pages[0].locator(".why")).to_have_text("This is not a valid API key.")
    for page in pages:
        await page.goto("/sign-in")
        await page.get_by_label("Key").fill(made.text)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url("**/queue")
        await expect(page.locator(".who")).to_contain_text("Signed in as acme")
    await upload(pages[0], "ours.pdf")
    # What was uploaded before signing in has come along.
    await expect(pages[1].locator(".job h2")).to_have_text(["ours.pdf", "mine.pdf"])
    await pages[1].get_by_role("button", name="Sign out").click()
    await pages[1].goto("/queue")
    await expect(pages[1].locator(".job")).to_have_count(0)


async def test_colours_follow_the_switch_and_stay(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(background)
    await page.get_by_role("button", name="Dark").click()
    await expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert await page.evaluate(background) != light
    await page.wait_for_load_state("networkidle")
    await page.goto("/queue")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("button", name="Auto").click()
    assert await page.evaluate(background) == light


async def test_a_pin_is_set_and_taken_away_with_the_keyboard(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    await still.become(job, "succeeded", started_at=datetime.now(UTC), finished_at=datetime.now(UTC))
    await page.goto("/queue")
    await page.get_by_role("button", name="Pin a.pdf", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Unpin a.pdf")).to_be_visible()
    await page.get_by_role("button", name="Unpin a.pdf").focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_role("button", name="Pin a.pdf", exact=True)).to_be_visible()
