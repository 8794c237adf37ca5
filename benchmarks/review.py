"""Measures the review of a long invoice in a real browser: when something is on the screen, and a check while typing.

The browser is a fresh one for each look, so nothing comes from its cache. A check counts from the keystroke until the
finding has been painted. Both are times on this machine, reported together with its load.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from benchmarks import invoices, wire
from benchmarks.arena import Arena, ContestantFailed
from benchmarks.contestants import ROOT, WAYBILL
from benchmarks.figures import Spread
from benchmarks.options import Options
from benchmarks.product import Product, connected, key, product
from benchmarks.report import Check, Section

LINES = 510
PAINTED, CHECKED = 300.0, 150.0
"""Milliseconds that are asked for."""
_LOOKS = 5
"""Looks in a round."""
_KEYSTROKES = 8
"""Keystrokes in a round."""
_READ_WITHIN = 60.0
_CHROMIUM = ROOT / "tests" / "support" / "chromium.sh"
"""Without the windows that nobody sees, which take more of the processor than the page."""
_BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "/usr/bin/chromium"
_ENVIRONMENT = {**os.environ, "CHROMIUM": _BROWSER}

_PAINT = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return { first: page.responseStart, received: page.responseEnd, painted: paint ? paint.startTime : null };
}"""

# A frame is painted after its callbacks: the callback of the next frame runs when the finding can be seen.
_WATCH = """() => {
  window.benchmark = { pressed: 0, seen: 0 };
  document.addEventListener("keydown", () => { benchmark.pressed = performance.now(); benchmark.seen = 0; }, true);
  const seen = () => requestAnimationFrame(() => requestAnimationFrame(() => {
    if (!benchmark.seen) benchmark.seen = performance.now();
  }));
  new MutationObserver(seen).observe(document.getElementById("problems"), { childList: true, subtree: true });
}"""
_SEEN = """() => new Promise((tell) => {
  const look = () => benchmark.seen ? tell(benchmark.seen - benchmark.pressed) : setTimeout(look, 5);
  look();
})"""


@dataclass
class Reviewed:
    """Milliseconds of every look and of every keystroke."""

    first_byte: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    painted: list[float] = field(default_factory=list)
    checked: list[float] = field(default_factory=list)


async def measure(arena: Arena, options: Options) -> Section:
    load = os.getloadavg()[0]
    async with (
        arena.database(WAYBILL) as url,
        connected(url) as connection,
        product(url, arena.home / "review", converting=True) as running,
        async_playwright() as playwright,
    ):
        credentials = await key(connection, "reviewer")
        job = await _converted(running, credentials)
        # As root, chromium has no sandbox to put itself into.
        browser = await playwright.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox"], env=dict(_ENVIRONMENT)
        )
        try:
            found = await _rounds(options, browser, f"http://127.0.0.1:{running.api.port}", credentials, job)
        finally:
            await browser.close()
    return _section(found, (load, os.getloadavg()[0]))


async def _converted(running: Product, credentials: Mapping[str, str]) -> str:
    document = invoices.one_page(1, LINES)
    media_type, body = wire.form(document, mapping=invoices.MAPPING)
    async with wire.connection(running.api.port) as client, asyncio.timeout(_READ_WITHIN):
        sent = await client.ask(wire.post("/api/upload", media_type, body, credentials), expect=201)
        job: str = json.loads(sent)["job"]["id"]
        while (
            status := json.loads(await client.ask(wire.get(f"/api/jobs/{job}", credentials)))["status"]
        ) != "complete":
            if status in ("failed", "cancelled"):
                raise ContestantFailed(f"The invoice came out as {status}.")
            await asyncio.sleep(0.2)
    return job


async def _rounds(
    options: Options, browser: Browser, address: str, credentials: Mapping[str, str], job: str
) -> Reviewed:
    warm_up, found = Reviewed(), Reviewed()
    # The first look waits for the side processes, and the first pictures for the gateway.
    await _look(browser, address, credentials, job, warm_up)
    for number in range(options.rounds):
        options.say(f"review: round {number + 1}")
        for _ in range(_LOOKS):
            await _look(browser, address, credentials, job, found)
        await _type(browser, address, credentials, job, found)
    return found


async def _opened(browser: Browser, address: str, credentials: Mapping[str, str]) -> tuple[BrowserContext, Page]:
    context = await browser.new_context(
        base_url=address, viewport={"width": 1280, "height": 800}, extra_http_headers=dict(credentials)
    )
    return context, await context.new_page()


async def _look(browser: Browser, address: str, credentials: Mapping[str, str], job: str, found: Reviewed) -> None:
    context, page = await _opened(browser, address, credentials)
    try:
        await page.goto(f"/review/{job}", wait_until="networkidle")
        times = cast("dict[str, float]", await page.evaluate(_PAINT))
        found.first_byte.append(times["first"])
        found.received.append(times["received"])
        found.painted.append(times["painted"])
    finally:
        await context.close()


async def _type(browser: Browser, address: str, credentials: Mapping[str, str], job: str, found: Reviewed) -> None:
    context, page = await _opened(browser, address, credentials)
    try:
        await page.goto(f"/review/{job}", wait_until="networkidle")
        await page.evaluate(_WATCH)
        await page.locator("[id='v-lines.3.qty']").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Delete")
        await _seen(page)
        for number in range(_KEYSTROKES):
            await page.keyboard.press(str(number + 1))
            found.checked.append(await _seen(page))
    finally:
        await context.close()


async def _seen(page: Page) -> float:
    async with asyncio.timeout(_READ_WITHIN):
        return float(await page.evaluate(_SEEN))


def _section(found: Reviewed, load: tuple[float, float]) -> Section:
    rows = []
    for name, took in (
        ("first byte of the page", found.first_byte),
        ("page received", found.received),
        ("first contentful paint", found.painted),
        ("keystroke to finding on the screen", found.checked),
    ):
        spread = Spread.of(took)
        rows.append((name, f"{spread.median:.0f}", f"{spread.low:.0f}", f"{spread.high:.0f}", str(len(took))))
    return Section(
        title=f"Review of an invoice of {LINES} lines, milliseconds",
        heading=("", "median", "least", "most", "samples"),
        rows=rows,
        checks=[
            Check.at_most("first contentful paint", statistics.median(found.painted), PAINTED, "{:.0f} ms"),
            Check.at_most("a check while typing", statistics.median(found.checked), CHECKED, "{:.0f} ms"),
        ],
        notes=[f"Load {load[0]:.1f} before and {load[1]:.1f} after. A browser of its own for each look: empty cache."],
        numbers={"load": load, **asdict(found)},
    )
