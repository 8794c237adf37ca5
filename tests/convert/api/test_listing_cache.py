"""While pages poll, the database hardly notices: reads are counted where they happen, in Postgres."""

from __future__ import annotations

import asyncio
import tracemalloc
import uuid
from datetime import UTC, datetime

import httpx

from support.api_server import Api, Converter, uploaded
from support.patience import eventually
from support.statements import Statements
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill_convert.listing_cache import ListingAnswer
from waybill_convert.status import Status
from waybill_convert.views import ConversionView, Fault, Listing

PAGES = 20
ROUNDS = 10


async def poll(clients: list[httpx.AsyncClient], path: str) -> None:
    await asyncio.gather(*(client.get(path) for client in clients))


async def test_polling_pages_cost_less_than_a_fifth_of_a_query_each(
    api: Api, db: Database, converter: Converter
) -> None:
    browser = await api.browser()
    for _ in range(5):
        await uploaded(browser)
    clients = [api.client(cookies=dict(browser.cookies)) for _ in range(PAGES)]
    leases = await converter.take()
    since = (await browser.get("/api/jobs")).json()["since"]
    statements = Statements()
    async with statements.counting(db):
        for number in range(ROUNDS):
            if number % 3 == 0:  # something does happen meanwhile
                await converter.finish(leases.pop())
            await poll(clients, "/api/jobs")
            await poll(clients, f"/api/jobs?since={since}")
    polls = 2 * ROUNDS * PAGES
    assert statements.sent, "they are counted"
    assert len(statements.sent) <= 0.2 * polls, f"{len(statements.sent)} statements for {polls} polls"
    final = (await browser.get("/api/jobs")).json()
    assert final["counts"]["complete"] == 4, "and yet nothing is stale"


async def test_a_change_is_seen_at_once(api: Api, converter: Converter) -> None:
    """No time-out is waited for: the next poll after the commit has been heard of sees it."""
    browser = await api.browser()
    await uploaded(browser)
    owner = (await converter.connection.fetchval("SELECT owner FROM conversions")) or ""
    for lease in await converter.take():
        assert (await browser.get("/api/jobs")).json()["counts"]["complete"] == 0
        seen = api.context.changes.version(owner)
        await converter.finish(lease)
        assert await api.context.changes.wait({owner: seen}, 10)
        assert (await browser.get("/api/jobs")).json()["counts"]["complete"] == 1


async def test_without_listening_what_is_remembered_is_good_for_two_seconds(api: Api, db: Database) -> None:
    browser = await api.browser()
    await uploaded(browser)
    await api.context.changes.stop()
    clients = [api.client(cookies=dict(browser.cookies)) for _ in range(PAGES)]
    statements = Statements()
    async with statements.counting(db):
        for _ in range(3):
            await poll(clients, "/api/jobs")
    assert 0 < len(statements.sent) <= 0.2 * 3 * PAGES
    await uploaded(browser)

    async def seen() -> bool:
        return bool((await browser.get("/api/jobs")).json()["counts"]["total"] == 2)

    await eventually(seen)


async def test_one_pages_polls_are_remembered_too(api: Api, db: Database) -> None:
    browser = await api.browser()
    await uploaded(browser)
    since = (await browser.get("/api/jobs")).json()["since"]
    seen = set()
    for _ in range(10):
        answer = (await browser.get(f"/api/jobs?since={since}")).json()
        since = answer["since"]
        seen.add(since)
    assert len(seen) <= 2, "a cursor that saw nothing stays, so that the answer to it is known"


async def test_versions_survive_a_lost_connection(db: Database) -> None:
    changes = Subscriptions(db)
    changes.start()
    try:
        async with asyncio.timeout(10):
            while not changes.listening:
                await asyncio.sleep(0.005)
        before = changes.version("session:a")
        async with db.hot() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        assert await changes.wait({"session:a": before}, 10), "what was said meanwhile is unknown: all may have changed"
    finally:
        await changes.stop()


def test_what_a_list_takes_to_remember_is_not_underestimated() -> None:
    """The bound on what is remembered is one on memory, not on what is sent."""
    words = "The total of this line does not add up. " * 20
    for findings in (0, 3, 40):
        tracemalloc.start()
        try:
            views = [_view(findings, words) for _ in range(200)]
            answer = ListingAnswer(Listing(views, None, "", dict.fromkeys(Status, 0), None))
            assert answer.body
            assert answer.etag
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held <= answer.weight <= 4 * held


def _view(findings: int, words: str) -> ConversionView:
    found = [{"message": f"{words}{number}", "page": number} for number in range(findings)]
    now = datetime.now(UTC)
    return ConversionView(
        id=uuid.uuid4(),
        status=Status.FAILED if findings else Status.COMPLETE,
        dead_letter=False,
        original_name=f"invoice-{uuid.uuid4()}.pdf",
        bytes=180_000,
        mapping="pt_simon_invoice_v1",
        created_at=now,
        listed_at=now,
        updated_at=now,
        started_at=now,
        finished_at=now,
        attempt=1,
        max_attempts=4,
        progress=1.0,
        progress_message=None,
        retry_at=None,
        remaining_seconds=None,
        reused=False,
        stopping=False,
        on_hold=None,
        error=Fault("GW_4XX", "This document could not be read.", found) if findings else None,
        source_kept=True,
    )
