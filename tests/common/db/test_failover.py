"""After a failover everybody finds the server that writes, and nobody stays with the one that does not."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from support.api_server import serving
from support.failover import Pair, replicated
from support.handlers import EFFECT, EFFECTS
from support.patience import eventually
from support.workers import all_ended, effects_happened_once, enqueue_effects, worker_starter
from waybill.config import CommonSettings, DatabaseUrl
from waybill.db import Database, driver
from waybill.db.migrations import upgrade
from waybill.errors import DatabaseUnavailable
from waybill.failures import classify, is_database_outage
from waybill_engine import NewJob, enqueue


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated() as both:
        yield both


@pytest.fixture
async def url(pair: Pair) -> str:
    """A migrated database that is on both servers."""
    await upgrade(pair.primary.create_database("replicated"))
    await pair.caught_up()
    return pair.url("replicated")


def settings(url: str) -> dict[str, Any]:
    return {"database_url": url, "database_connect_timeout": 0}


async def write_everywhere(db: Database) -> bool:
    """Write through both pools. False while the server that answers does not write."""
    failures = [await failure(way(db)) for way in (write_hot, write_in_a_session)]
    for each in failures:
        assert each is None or (is_database_outage(each) and not classify(each).charged), each
    return failures == [None, None]


async def failure(write: Awaitable[None]) -> Exception | None:
    try:
        await write
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error
    return None


async def write_hot(db: Database) -> None:
    async with db.hot() as connection:
        await connection.execute("INSERT INTO garbage VALUES (gen_random_uuid()::text, now())")


async def write_in_a_session(db: Database) -> None:
    async with db.transaction() as session:
        await (await driver(session)).execute("INSERT INTO garbage VALUES (gen_random_uuid()::text, now())")


async def test_open_sessions_leave_a_server_that_writes_no_more(pair: Pair, url: str, tmp_path: Path) -> None:
    db = await Database.connect(CommonSettings.model_validate(settings(url)))
    assert await write_everywhere(db)
    async with serving(settings(url), db, tmp_path) as api:
        assert (await api.client().get("/readyz")).status_code == 200
        await pair.refuse_writes()

        async def unready() -> bool:
            return (await api.client().get("/readyz")).status_code == 503

        await eventually(unready, what="readiness ends when nothing can be written")
        assert not await write_everywhere(db)
        await pair.fail_over()
        await eventually(lambda: write_everywhere(db), what="writes reach the new primary")
        await upgrade(url)

        async def ready() -> bool:
            return (await api.client().get("/readyz")).status_code == 200

        await eventually(ready)
    async with db.transaction() as session, db.hot() as hot:
        for connection in (await driver(session), hot):
            assert await connection.fetchval("SELECT inet_server_port()") == pair.standby.port
    await db.close()


async def test_a_standby_is_not_used(pair: Pair, url: str) -> None:
    standby = pair.standby.url_of("replicated")
    with pytest.raises(DatabaseUnavailable, match="Name its primary in WAYBILL_DATABASE_URL"):
        await Database.connect(CommonSettings.model_validate(settings(standby)))
    # Unless somebody asks for one.
    db = await Database.connect(CommonSettings.model_validate(settings(f"{standby}?target_session_attrs=any")))
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await db.check_writable()
    await db.close()


async def test_a_server_that_says_nothing_leaves_time_to_ask_the_next(database_url: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = database_url.replace("@", f"@127.0.0.1:{silent.getsockname()[1]},", 1)
        db = Database(DatabaseUrl(url), patience=30)
        await db.check()
        assert await write_everywhere(db)
        await db.close()


@pytest.mark.heavy
async def test_workers_go_on_with_the_new_primary(pair: Pair, url: str, tmp_path: Path) -> None:
    old = await asyncpg.connect(pair.primary.url_of("replicated"))
    await old.execute(EFFECTS)
    with worker_starter(url, tmp_path) as start:
        for _ in range(2):
            start(poll_interval=1)
        await enqueue_effects(old, 50)
        await eventually(lambda: all_ended(old), within=60)
        await pair.fail_over()
        new = await asyncpg.connect(pair.standby.url_of("replicated"))
        for _ in range(50):
            await enqueue(new, NewJob(EFFECT, "acme"))
        await eventually(lambda: all_ended(new), within=60)
        await effects_happened_once(new, 100)
        await new.close()
    await old.close()
