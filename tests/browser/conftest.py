"""A real browser in front of real processes. One browser and one stack for all tests; a fresh session for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, FilePayload, Page, async_playwright, expect

from conftest import on_server
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.stack import CHROMIUM, Stack

expect.set_options(timeout=20_000)

_numbers = itertools.count()
_seeds = itertools.count(1)

LAUNCHER = Path(__file__).parent.parent / "support" / "chromium.sh"

OpenPage = Callable[..., Awaitable[Page]]
Invoice = Callable[..., Path]
MakeStack = Callable[..., Awaitable[Stack]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here waits on the loop that the browser lives on."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip("there is no chromium here (Debian: apt install chromium-headless-shell)")
    async with async_playwright() as playwright:
        # As root, as CI runs, chromium has no sandbox to put itself into.
        browser = await playwright.chromium.launch(
            executable_path=LAUNCHER, args=["--no-sandbox"], env={**os.environ, "CHROMIUM": CHROMIUM}
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def make_stack(
    server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MakeStack]:
    """A database and an API over it, with other settings if need be. It lasts as long as the tests do."""
    made: list[Stack] = []
    databases: list[str] = []

    async def make(*services: str, **settings: str) -> Stack:
        name = f"waybill_browser_{os.getpid()}_{next(_numbers)}"
        connection = await asyncpg.connect(server_url)
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        await connection.close()
        databases.append(name)
        stack = Stack(on_server(server_url, name), tmp_path_factory.mktemp("stack"), shared_imports=True, **settings)
        made.append(stack)
        await stack.start_all("api", *services)
        return stack

    yield make
    for stack in made:
        stack.close()
    connection = await asyncpg.connect(server_url)
    for name in databases:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await connection.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def still(make_stack: MakeStack, browser: Browser) -> Stack:
    """Nothing is converted here: jobs stay as the test puts them."""
    return await make_stack(WAYBILL_API_UPLOADS_PER_MINUTE="1000", WAYBILL_API_ADDRESS_UPLOADS_PER_MINUTE="0")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def working(make_stack: MakeStack, browser: Browser) -> Stack:
    """The whole product."""
    return await make_stack(
        "gateway", "worker", WAYBILL_API_UPLOADS_PER_MINUTE="1000", WAYBILL_API_ADDRESS_UPLOADS_PER_MINUTE="0"
    )


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser) -> AsyncIterator[OpenPage]:
    """Opens pages, each in a browser of its own, and fails if anything went wrong in one of them."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    async def open_one(stack: Stack, path: str = "/", *, expected: tuple[str, ...] = (), **options: Any) -> Page:
        context = await browser.new_context(
            base_url=stack.url, **{"viewport": {"width": 1280, "height": 800}, **options}
        )
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"{page.url}: {error}"))

        def heard(message: Any) -> None:
            if message.type == "error" and not any(part in message.text for part in expected):
                troubles.append(f"{page.url}: {message.text}")

        page.on("console", heard)
        await page.goto(path)
        return page

    yield open_one
    for context in contexts:
        await context.close()
    assert not troubles


Upload = Callable[..., Awaitable[str]]


@pytest.fixture
def upload(invoice: Invoice) -> Upload:
    """Uploads an invoice as the browser of a page would, and says which job it is."""

    async def send(page: Page, name: str | None = None, **making: Any) -> str:
        file = invoice(**making)
        content: FilePayload = {
            "name": name or file.name,
            "mimeType": "application/pdf",
            "buffer": file.read_bytes(),
        }
        answer = await page.request.post("/api/upload", multipart={"file": content})
        assert answer.ok, await answer.text()
        return str((await answer.json())["job"]["id"])

    return send


@pytest.fixture
def invoice(tmp_path: Path) -> Invoice:
    """Prints invoices, no two of them the same."""

    def make(name: str | None = None, *, lines: int = 3, seed: int | None = None) -> Path:
        made = make_invoice(seed or 7000 + os.getpid() * 1000 + next(_seeds), lines)
        path = tmp_path / (name or f"Faktur {made.number}.pdf")
        path.write_bytes(print_invoice(made, REFERENCE))
        return path

    return make
