"""/ops in a real browser: with everything on it, live, and without scripts."""

from __future__ import annotations

import asyncpg
import pytest_asyncio
from playwright.async_api import Page, expect

from browser.conftest import MakeStack, OpenPage
from browser.test_accessibility import Look, _is_fine, _open, looks
from support.busy_system import fill, job_with_a_life
from support.stack import Stack
from waybill.security import ADMIN, keys
from waybill_engine import breaker_control, control


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(make_stack: MakeStack) -> tuple[Stack, str, str]:
    """A system that is busy and a little sick, an admin's key, and a job with a long history."""
    stack = await make_stack()
    connection = await asyncpg.connect(stack.database_url)
    try:
        key = await keys.create(connection, tenant="operators", name="ops", permissions=[ADMIN])
        await fill(connection, workers=4, queued=60, running=12, scheduled=5, dead_letter=40, succeeded=30, failed=3)
        await breaker_control.trip(connection, "storage", "The disk is being replaced.")
        job = await job_with_a_life(connection)
    finally:
        await connection.close()
    return stack, key.text, str(job)


async def sign_in(page: Page, key: str) -> None:
    await page.goto("/sign-in")
    await page.locator("#key").fill(key)
    await page.locator("form[action='/session'] button").click()
    await page.wait_for_url("**/ops")


@looks
async def test_nothing_to_complain_about(busy: tuple[Stack, str, str], open_page: OpenPage, look: Look) -> None:
    stack, key, job = busy
    page = await _open(open_page, stack, look)
    await sign_in(page, key)
    await page.evaluate("for (const each of document.querySelectorAll('#live details')) each.open = true")
    await _is_fine(page, "ops-busy", look)
    await page.goto(f"/ops/jobs/{job}")
    await _is_fine(page, "ops-job", look)


async def test_an_open_page_changes_by_itself_and_leaves_what_somebody_types(
    busy: tuple[Stack, str, str], open_page: OpenPage
) -> None:
    stack, key, _ = busy
    page = await open_page(stack, "/sign-in")
    await sign_in(page, key)
    await page.locator("#table-depth summary").click()
    await page.locator("#ops-queues summary").first.click()
    await page.locator("#ops-queues input[name=reason]").first.fill("Because")
    await page.evaluate("window.opened = true")

    await stack.run(lambda connection: breaker_control.reset(connection, "storage"))
    await stack.run(lambda connection: breaker_control.trip(connection, "gateway", "Now this one."))

    await expect(page.locator(".verdict")).to_contain_text("gateway was switched off by hand")
    assert await page.evaluate("window.opened"), "it was not loaded again"
    await expect(page.locator("#table-depth")).to_have_attribute("open", "")
    await expect(page.locator("#ops-queues input[name=reason]").first).to_have_value("Because")
    await page.get_by_role("button", name="Pause default").click()
    await expect(page.get_by_role("status").first).to_have_text("The queue default is paused.")
    await stack.run(lambda connection: control.resume(connection, "default"))
    await stack.run(lambda connection: breaker_control.reset(connection, "gateway"))
    await stack.run(lambda connection: breaker_control.trip(connection, "storage", "The disk is being replaced."))


async def test_everything_works_without_scripts(busy: tuple[Stack, str, str], open_page: OpenPage) -> None:
    stack, key, job = busy
    page = await open_page(stack, "/sign-in", java_script_enabled=False)
    await sign_in(page, key)
    await page.get_by_role("button", name="Resume webhooks").click()
    await expect(page.locator("main p[role=status]")).to_have_text("The queue webhooks is open again.")
    await page.get_by_label("Pause webhooks").click()
    await page.locator("#ops-queues").get_by_label("Reason").last.fill("Later")
    await page.get_by_role("button", name="Pause webhooks").click()
    await expect(page.locator("#ops-queues")).to_contain_text("Later")

    for box in await page.locator("#ops-dead input[type=checkbox]").all():
        await box.check()
    await page.get_by_role("button", name="Retry the chosen groups").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Retry 40 jobs?")
    await page.get_by_role("button", name="Retry them").click()
    await expect(page.locator("main p[role=status]")).to_have_text("40 jobs were queued again.")

    await page.get_by_label("Job id").fill(job[:18])
    await page.get_by_role("button", name="Find").click()
    await page.wait_for_url(f"**/ops/jobs/{job}")
    await expect(page.locator("#job-life tbody tr")).to_have_count(7)
