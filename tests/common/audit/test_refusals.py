"""Refusals are counted: a storm is one event."""

from __future__ import annotations

import asyncio
from typing import Any

from support.engine import Connect
from support.patience import eventually
from waybill.audit import Actor, RefusalCounter
from waybill.db import Database

_EVENTS = """
SELECT actor, address, action, subject, times, outcome FROM audit_events ORDER BY times DESC, actor, address
"""


async def _events(connect: Connect) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await (await connect()).fetch(_EVENTS)]


async def test_a_storm_of_refusals_is_one_event_for_each_who_and_what(db: Database, connect: Connect) -> None:
    counter = RefusalCounter(db, interval=0.01)
    counter.start()
    for _ in range(5_000):
        counter.count(Actor("visitor", address="192.0.2.1"), "request.refused", "GET /api/jobs", status=401)
    counter.count(Actor("visitor", address="192.0.2.2"), "request.refused", "GET /api/jobs", status=401)

    async def written() -> bool:
        return len(await _events(connect)) == 2

    await eventually(written)
    await counter.stop()
    assert await _events(connect) == [
        ("visitor", "192.0.2.1", "request.refused", "GET /api/jobs", 5000, "refused"),
        ("visitor", "192.0.2.2", "request.refused", "GET /api/jobs", 1, "refused"),
    ]


async def test_a_thousand_addresses_do_not_make_a_thousand_events(db: Database, connect: Connect) -> None:
    counter = RefusalCounter(db, most=3)
    for number in range(1000):
        counter.count(Actor("visitor", address=f"192.0.2.{number}"), "request.refused")
    await counter.stop()
    assert await _events(connect) == [
        ("others", None, "request.refused", None, 997, "refused"),
        ("visitor", "192.0.2.0", "request.refused", None, 1, "refused"),
        ("visitor", "192.0.2.1", "request.refused", None, 1, "refused"),
        ("visitor", "192.0.2.2", "request.refused", None, 1, "refused"),
    ]


async def test_an_address_that_tries_everything_does_not_hide_the_others(db: Database, connect: Connect) -> None:
    counter = RefusalCounter(db, most=20)
    for number in range(1000):
        counter.count(Actor("visitor", address="192.0.2.1"), "request.refused", f"GET /{number}", status=401)
    for number in range(5):
        counter.count(Actor("visitor", address=f"198.51.100.{number}"), "request.refused", "GET /api/jobs", status=401)
    await counter.stop()
    crowd, *alone = await _events(connect)
    assert crowd == ("others", "192.0.2.1", "request.refused", None, 990, "refused")
    assert [row[1] for row in alone].count("192.0.2.1") == 10
    assert {row[1] for row in alone} == {"192.0.2.1", *(f"198.51.100.{number}" for number in range(5))}


async def test_what_could_not_be_written_stays_counted_and_stopping_writes_it(db: Database, connect: Connect) -> None:
    connection = await connect()
    counter = RefusalCounter(db)
    counter.count(Actor("visitor"), "request.refused")
    await connection.execute("ALTER TABLE audit_events RENAME TO elsewhere")
    await counter.flush()
    counter.count(Actor("visitor"), "request.refused")
    await connection.execute("ALTER TABLE elsewhere RENAME TO audit_events")
    await asyncio.wait_for(counter.stop(), 10)
    assert [row[4] for row in await _events(connect)] == [2]
