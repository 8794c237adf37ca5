"""Measures the list of many jobs beside a FastAPI endpoint with one query, and the queue's page.

The list is requested while nothing changes, and while a job of its owner changes twenty times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from benchmarks import wire
from benchmarks.options import Options
from benchmarks.processor import milliseconds_of
from benchmarks.services import Service
from waybill.db.database import Connection

JOBS, ROWS = 100_000, 500
_AT_ONCE = 8
_SECONDS = 1.0
_TURNS = 5
"""Turns of each server in a round."""
_LOOKS = 15
"""Requests for the page in a round."""
CHANGES = 20
"""Changes per second."""
_HEARD = 0.03
"""Seconds after which the API has received the notification of a change."""

_FILL = """
WITH made AS (
    INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, max_attempts, time_limit, lease_token, attempts,
                      progress, started_at, finished_at, error_code, error_message, error_detail)
    SELECT uuidv7(), $1, 'tenant:' || $1, 'convert_pdf', 'convert',
           CASE WHEN n % 25 = 0 THEN 'failed' ELSE 'succeeded' END,
           '{}', 4, 600, 1, 1, 1, now(), now(),
           CASE WHEN n % 25 = 0 THEN 'GW_4XX' END,
           CASE WHEN n % 25 = 0 THEN 'This document could not be read.' END,
           CASE WHEN n % 25 = 0 THEN '{"findings": [{"message": "The total does not add up.", "page": 1}]}'::jsonb END
      FROM generate_series(1, $2::int) AS n
    RETURNING id, tenant, owner, state
)
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status, listed_at)
SELECT id, tenant, owner, 'invoice-' || right(id::text, 12) || '.pdf', 180000, md5(id::text) || md5(id::text),
       'pt_simon_invoice_v1', 'uploads/26/01/01/' || id || '.pdf',
       CASE state WHEN 'failed' THEN 'failed' ELSE 'complete' END, now() - row_number() OVER () * interval '1 second'
  FROM made
"""

_CHANGE = """
UPDATE jobs SET progress_message = clock_timestamp()::text
 WHERE id = (SELECT job_id FROM conversions WHERE owner = $1 ORDER BY listed_at DESC LIMIT 1)
"""


@dataclass
class Rate:
    """The rates of all turns."""

    per_second: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    """Processor time of the serving process per request."""


@dataclass
class Lists:
    question: Rate = field(default_factory=Rate)
    remembered: Rate = field(default_factory=Rate)
    changing: Rate = field(default_factory=Rate)
    anew: list[float] = field(default_factory=list)
    """Milliseconds of a list right after a change."""


@dataclass
class Page:
    """Milliseconds per request, less those of an empty answer, and the API's processor time."""

    remembered: list[float] = field(default_factory=list)
    anew: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    processor_anew: list[float] = field(default_factory=list)
    bytes: int = 0


async def fill(connection: Connection, tenant: str, rows: int) -> None:
    await connection.execute(_FILL, tenant, rows, timeout=600)


async def lists(
    options: Options, api: Service, bare: Service, key: Mapping[str, str], owner: str, connection: Connection
) -> Lists:
    found = Lists()
    ours, theirs = wire.get("/api/jobs?limit=50", key), wire.get("/one")
    for service, request in ((api, ours), (bare, theirs)):
        await _turn(service, request, Rate())
    for number in range(options.rounds * _TURNS):
        options.say(f"convert: lists, turn {number + 1}")
        await _turn(bare, theirs, found.question)
        await _turn(api, ours, found.remembered)
        async with _changing(connection, owner):
            await _turn(api, ours, found.changing)
        async with wire.connection(api.port) as client:
            for _ in range(3):
                await _change(connection, owner)
                found.anew.append(await _milliseconds(client, ours))
    return found


async def page(options: Options, api: Service, key: Mapping[str, str], owner: str, connection: Connection) -> Page:
    found = Page()
    look, nothing = wire.get(f"/queue?limit={ROWS}", key), wire.get("/livez")
    async with wire.connection(api.port) as client:
        found.bytes = len(await client.ask(look))
        for number in range(options.rounds):
            options.say(f"convert: the page, round {number + 1}")
            for _ in range(_LOOKS):
                await _change(connection, owner)
                before = milliseconds_of(api.pid)
                anew = await _milliseconds(client, look)
                found.processor_anew.append(milliseconds_of(api.pid) - before)
                alone = await _milliseconds(client, nothing)
                before = milliseconds_of(api.pid)
                remembered = await _milliseconds(client, look)
                found.processor.append(milliseconds_of(api.pid) - before)
                found.anew.append(anew - alone)
                found.remembered.append(remembered - alone)
    return found


async def _turn(service: Service, request: bytes, rate: Rate) -> None:
    """Let a few clients send requests without a pause for a while."""
    answered = 0
    before, started = milliseconds_of(service.pid), time.perf_counter()

    async def client() -> None:
        nonlocal answered
        async with wire.connection(service.port) as connection:
            while time.perf_counter() - started < _SECONDS:
                await connection.ask(request)
                answered += 1

    async with asyncio.TaskGroup() as clients:
        for _ in range(_AT_ONCE):
            clients.create_task(client())
    rate.per_second.append(answered / (time.perf_counter() - started))
    rate.microseconds.append((milliseconds_of(service.pid) - before) * 1e3 / answered)


@contextlib.asynccontextmanager
async def _changing(connection: Connection, owner: str) -> AsyncIterator[None]:
    async def change() -> None:
        while True:
            await asyncio.gather(connection.execute(_CHANGE, owner), asyncio.sleep(1 / CHANGES))

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _change(connection: Connection, owner: str) -> None:
    await connection.execute(_CHANGE, owner)
    await asyncio.sleep(_HEARD)


async def _milliseconds(client: wire.Connection, request: bytes) -> float:
    started = time.perf_counter()
    await client.ask(request)
    return (time.perf_counter() - started) * 1000
