"""The hot statements keep their one plan, whatever Postgres believes about the table.

A queue table's statistics are always wrong. Each test here makes them wrong in another way and looks at the plans.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from conftest import a_database, on_server
from support.engine import some_jobs, start_worker
from support.server import Maintenance
from waybill.config import CommonSettings
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill_engine import (
    artefacts,
    breaker,
    caps,
    claim,
    control,
    due_times,
    families,
    finish,
    job_filter,
    lanes,
    lease,
    overview,
    promotion,
    rescue,
    samples,
    sequences,
)
from waybill_engine.backlog import read_backlog
from waybill_engine.enqueue import _INSERT
from waybill_engine.unique_keys import _FIND_EXISTING, _FREE_PASSED_WINDOWS

ID = "'01890000-0000-7000-8000-000000000001'::uuid"
IDS = f"ARRAY[{ID}]"
TIMES = "ARRAY['2026-01-01Z']::timestamptz[]"


@dataclass(frozen=True)
class Hot:
    """A statement, arguments for it, and the only ways it may reach jobs: index and a part of the condition."""

    sql: str
    arguments: str
    ways: dict[str, str]


BY_ID = {"jobs_pkey": "id ="}
LANES = "ARRAY['default'], ARRAY['work']"
PORTIONS = (
    f"{ID}, false, {LANES}, ARRAY[0]::smallint[], ARRAY['acme'], ARRAY['acme'], {TIMES}, {IDS}, ARRAY[NULL]::text[]"
)
GATES = (
    "ARRAY[1], ARRAY['acme'], ARRAY[NULL]::text[], ARRAY[1], ARRAY[]::int[], "
    "ARRAY[0, 0], ARRAY[1, 1], ARRAY[1, 2], ARRAY[1], 10, ARRAY['x']"
)
NEW_JOB = (
    f"{IDS}, ARRAY['acme'], ARRAY['acme'], ARRAY['work'], ARRAY['default'], ARRAY[0]::smallint[], ARRAY[1]::bigint[], "
    "ARRAY['{}'], ARRAY[3]::smallint[], ARRAY[3]::smallint[], ARRAY[60]::real[], ARRAY[NULL]::timestamptz[], "
    "ARRAY[0]::float8[], ARRAY['k'], ARRAY['active'], ARRAY[NULL]::float8[], ARRAY[NULL]::text[], ARRAY[false], NULL, "
    "ARRAY['s'], ARRAY[1]::smallint[], ARRAY[NULL]::text[]"
)

CHOSEN = "ARRAY['queued'], 'work', NULL, NULL, NULL, NULL, 60, now(), 'cancel'"

PAIRS = "ARRAY['paused', 'paused', 'default', 'default'], ARRAY['other', 'work', 'other', 'work']"
BEHIND_ACME = "ARRAY[0]::smallint[], ARRAY['acme'], ARRAY['acme']"
FROM_THE_START = ", ".join(f"ARRAY[NULL, NULL, NULL, NULL]::{kind}[]" for kind in ("smallint", "text", "text"))
SUCCEED = Hot(finish._SUCCEED, f"{IDS}, ARRAY[1], {ID}", BY_ID)
SUCCEED_WITH_OTHERS = Hot(finish._SUCCEED_WITH_OTHERS, f"{IDS}, ARRAY[1], {ID}", BY_ID)
SETTLE = Hot(
    finish._SETTLE,
    f"{IDS}, ARRAY[1], ARRAY['failed'], ARRAY[false], ARRAY[false], ARRAY[0]::float8[], ARRAY[1], ARRAY['X'], "
    f"ARRAY['x'], ARRAY[NULL]::text[], ARRAY['failed'], {ID}, 'cancelled', true, ARRAY[false]",
    BY_ID,
)
PUBLISH = Hot(artefacts._PUBLISH, f"{ID}, 1, 'out', 'key', 'text/plain', 1, 'ab', {ID}", BY_ID)
FREE_WINDOWS = Hot(
    _FREE_PASSED_WINDOWS, "ARRAY['acme'], ARRAY['work'], ARRAY['k']", {"jobs_unique_kept": "unique_key =", **BY_ID}
)
INSERT = Hot(_INSERT, NEW_JOB, {})
WAIT = Hot(families._WAIT, f"{ID}, 1", BY_ID)
LOCK_PARENT = Hot(families._LOCK_PARENT, ID, BY_ID)
CHILDREN_ENDED = Hot(families._CHILDREN_ENDED, f"{IDS}, ARRAY[1]", BY_ID)
MORE_PENDING = Hot(families._MORE_PENDING, f"{ID}, 1, 1", BY_ID)
FIND_EXISTING = Hot(
    _FIND_EXISTING,
    "ARRAY['acme'], ARRAY['work'], ARRAY['k'], ARRAY['active']",
    {"jobs_unique_while_active": "unique_key =", "jobs_unique_kept": "unique_key ="},
)

KEYS = "ARRAY['acme'], ARRAY['work'], ARRAY['k']"
BY_SEQUENCE = {"jobs_parked": "sequence_key =", "jobs_in_turn": "sequence_key ="}
ADVANCE = Hot(sequences._ADVANCE, KEYS, BY_SEQUENCE | BY_ID)
ABOVE = Hot(sequences._ABOVE, ID, BY_ID)

HOT = {
    "claim": Hot(claim._CLAIM, f"{PORTIONS}, ARRAY[10], 10", {"jobs_owner_order": "ROW(created_at, id) >=", **BY_ID}),
    "claim: gated": Hot(
        claim._CLAIM_GATED, f"{PORTIONS}, {GATES}", {"jobs_owner_order": "ROW(created_at, id) >=", **BY_ID}
    ),
    "claim: paced": Hot(
        claim._CLAIM_PACED, f"{PORTIONS}, {GATES}", {"jobs_owner_order": "ROW(created_at, id) >=", **BY_ID}
    ),
    "look": Hot(lanes._FIND_LANES, f"{LANES}, false, 100, {BEHIND_ACME}", {"jobs_owner_order": "queue ="}),
    "running under caps": Hot(caps._RUNNING, "ARRAY[1, 2, 3], ARRAY['work'], true", {"jobs_held": "lease_owner ="}),
    "trouble": Hot(rescue._TROUBLE, f"0, {LANES}", {"jobs_owner_order": "isolate ="}),
    "due": Hot(due_times._DUE, "now()", {"jobs_scheduled": "run_at"}),
    "promote": Hot(promotion._PROMOTE, "1000, true, NULL", {"jobs_scheduled": "run_at", **BY_ID}),
    "renew: running": Hot(lease._RUNNING, ID, {"jobs_held": "lease_owner ="}),
    "progress": Hot(lease._PROGRESS, f"{IDS}, ARRAY[1], {IDS}, ARRAY[0.5]::real[], ARRAY['x']", BY_ID),
    "succeed": SUCCEED,
    "succeed: with others": SUCCEED_WITH_OTHERS,
    "settle": SETTLE,
    "succeeded by": Hot(finish._LOCK, IDS, BY_ID),
    "breaker: in flight": Hot(breaker._IN_FLIGHT, "ARRAY['converter']", {"jobs_held": "lease_owner ="}),
    "rescue: look up": Hot(rescue._LOCK_RUNNING, ID, {"jobs_held": "lease_owner =", **BY_ID}),
    "rescue: return": Hot(
        rescue._RETURN,
        f"{IDS}, ARRAY['queued'], ARRAY[1], ARRAY['crashed'], ARRAY['X'], ARRAY['x'], {ID}, 'worker', ARRAY[true], "
        "ARRAY['{}'], '{}'",
        BY_ID,
    ),
    "cancel: waiting": Hot(control._CANCEL_WAITING, f"{IDS}, 'why'", BY_ID),
    "cancel: running": Hot(control._ASK_TO_STOP, f"{IDS}, 'why'", BY_ID),
    "cancel: leave family": Hot(control._LEAVE_FAMILY, f"{IDS}, {ID}", BY_ID),
    "retry": Hot(control._RETRY, f"{IDS}, 'why', ARRAY[0], ARRAY[false]", BY_ID),
    "bulk: page": Hot(job_filter._PAGE, f"{CHOSEN}, {ID}, 5000", {"jobs_pkey": "id >"}),
    "bulk: dead letters": Hot(job_filter._PAGE_OF_DEAD_LETTERS, f"{CHOSEN}, {ID}, 5000", {"jobs_dead_letter": "id >"}),
    "bulk: active": Hot(
        job_filter._ACTIVE, f"{CHOSEN}, {ID}", {"jobs_owner_order": "", "jobs_scheduled": "", "jobs_held": ""}
    ),
    "bulk: lock": Hot(job_filter._LOCK, f"{CHOSEN}, {IDS}", BY_ID),
    "bulk: match": Hot(job_filter._MATCHES_ONE, f"{CHOSEN}, {ID}", BY_ID),
    "retry: await": Hot(control._AWAIT, IDS, BY_ID),
    "family: wait": WAIT,
    "family: lock parent": LOCK_PARENT,
    "family: more pending": MORE_PENDING,
    "family: children ended": CHILDREN_ENDED,
    "family: look": Hot(families._FAMILY, ID, {"jobs_children": "parent_id =", **BY_ID}),
    "family: lock alone": Hot(families._LOCK_ALONE, ID, BY_ID),
    "family: lock": Hot(families._LOCK_IN_ORDER, IDS, BY_ID),
    "family: lock parents": Hot(families._LOCK_YOUNGEST_FIRST, IDS, BY_ID),
    "publish": PUBLISH,
    "enqueue": INSERT,
    "enqueue: free windows": FREE_WINDOWS,
    "enqueue: find existing": FIND_EXISTING,
    "sample": Hot(
        samples._TAKE,
        "100000, 20, 10",
        {"jobs_owner_order": "", "jobs_scheduled": "", "jobs_held": "", "jobs_dead_letter": ""},
    ),
    "overview: workers": Hot(overview._WORKERS, "200", {"jobs_held": "lease_owner ="}),
    "overview: running": Hot(overview._RUNNING, "1000", {"jobs_held": "", **BY_ID}),
    "overview: waiting": Hot(overview._WAITING, IDS, BY_ID),
    "overview: dead letters": Hot(overview._DEAD_LETTERS, "2000", {"jobs_dead_letter": ""}),
    "sequences: advance": ADVANCE,
    "sequences: above": ABOVE,
    "sequences: stalled": Hot(
        sequences._STALLED, "'', '', '', 100", {"jobs_parked": "sequence_key", "jobs_in_turn": "sequence_key ="}
    ),
}

IN_A_HANDLERS_TRANSACTION = {
    "succeed": SUCCEED,
    "succeed: with others": SUCCEED_WITH_OTHERS,
    "settle": SETTLE,
    "publish": PUBLISH,
    "enqueue": INSERT,
    "enqueue: free windows": FREE_WINDOWS,
    "enqueue: find existing": FIND_EXISTING,
    "family: wait": WAIT,
    "family: lock parent": LOCK_PARENT,
    "family: more pending": MORE_PENDING,
    "family: children ended": CHILDREN_ENDED,
    "sequences: advance": ADVANCE,
    "sequences: above": ABOVE,
}
"""These also run on SQLAlchemy's connections, whose planner is free."""

FILL = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, max_attempts, finished_at)
SELECT gen_random_uuid(), 'acme', 'acme', 'work', 'default', $1, '{}', 60, 3,
       CASE WHEN $1 IN ('succeeded', 'failed') THEN now() END
  FROM generate_series(1, $2::int)
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def complaint(plan: dict[str, Any], ways: dict[str, str]) -> str | None:
    """Why this is not the plan the statement was written for."""
    found = set()
    for node in nodes(plan):
        if node.get("Relation Name") == "jobs" and node["Node Type"] == "Seq Scan":
            return "reads all of jobs"
        index = str(node.get("Index Name", ""))
        if not index.startswith("jobs_"):
            continue
        condition = str(node.get("Index Cond", "none")).replace("jobs.", "")
        if index not in ways:
            return f"goes through {index}"
        if ways[index] not in condition:
            return f"walks all of {index} (condition: {condition})"
        found.add(index)
    return "uses none of its indexes" if ways and not found else None


async def prepare(connection: Connection, statements: dict[str, Hot]) -> None:
    for name, hot in statements.items():
        await connection.execute(f"PREPARE {prepared(name)} AS {hot.sql}")


def prepared(name: str) -> str:
    return "p_" + re.sub(r"\W+", "_", name)


async def complaints(connection: Connection, statements: dict[str, Hot]) -> dict[str, str]:
    """What is wrong with the plans of prepared statements, by name."""
    wrong = {}
    for name, hot in statements.items():
        arguments = f"({hot.arguments})" if hot.arguments else ""
        answer = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {prepared(name)} {arguments}")
        # SQLAlchemy teaches its connections to read JSON, asyncpg's own give the text.
        (explained,) = json.loads(answer) if isinstance(answer, str) else answer
        if found := complaint(explained["Plan"], hot.ways):
            wrong[name] = found
    return wrong


async def forging(connection: Connection) -> None:
    """Prepare the database for wrong statistics."""
    if not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        pytest.skip("forging statistics needs a superuser")
    await connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")


@pytest.fixture
async def admin(hot: Connection) -> Connection:
    await forging(hot)
    return hot


# Five ways to be wrong


async def never_analyzed(admin: Connection) -> None:
    await admin.execute(FILL, "queued", 2000)


async def analyzed_while_empty(admin: Connection) -> None:
    await admin.execute("VACUUM ANALYZE jobs")
    await admin.execute(FILL, "queued", 50_000)
    await admin.execute(FILL, "succeeded", 50_000)


async def analyzed_while_all_were_queued(admin: Connection) -> None:
    await admin.execute(FILL, "queued", 20_000)
    await admin.execute("ANALYZE jobs")
    await admin.execute("UPDATE jobs SET state = 'succeeded', finished_at = now()")


async def analyzed_while_all_were_finished(admin: Connection) -> None:
    await admin.execute(FILL, "succeeded", 20_000)
    await admin.execute("VACUUM ANALYZE jobs")
    await admin.execute("UPDATE jobs SET state = 'queued', finished_at = NULL")


async def analyzed_while_all_were_running(admin: Connection) -> None:
    await admin.execute(FILL, "queued", 20_000)
    await admin.execute("UPDATE jobs SET state = 'running', lease_owner = gen_random_uuid(), lease_token = 1")
    await admin.execute("VACUUM ANALYZE jobs")
    await admin.execute("UPDATE jobs SET state = 'succeeded', lease_owner = NULL, finished_at = now()")


async def empty(admin: Connection) -> None:
    await admin.execute("VACUUM ANALYZE jobs")


WRONG = [
    empty,
    never_analyzed,
    analyzed_while_empty,
    analyzed_while_all_were_queued,
    analyzed_while_all_were_finished,
    analyzed_while_all_were_running,
]


@pytest.fixture(scope="module")
def wrong(request: pytest.FixtureRequest, server_url: str, maintenance: Maintenance, template: str) -> Iterator[str]:
    """A database whose statistics are wrong in one of these ways. Tests only look at plans there, so they share it."""

    async def make() -> None:
        connection = await asyncpg.connect(on_server(server_url, name))
        try:
            await forging(connection)
            await request.param(connection)
        finally:
            await connection.close()

    with a_database(maintenance, template) as name:
        asyncio.run(make())
        yield on_server(server_url, name)


@pytest.fixture
async def misled(wrong: str) -> AsyncIterator[Database]:
    database = await Database.connect(CommonSettings.model_validate({"database_url": wrong}), name="test")
    yield database
    await database.close()


every_way = pytest.mark.parametrize("wrong", WRONG, indirect=True, ids=[one.__name__ for one in WRONG])
after_analyzing = pytest.mark.parametrize("wrong", WRONG[2:], indirect=True, ids=[one.__name__ for one in WRONG[2:]])


@every_way
async def test_the_engines_statements_have_one_plan(misled: Database) -> None:
    async with misled.hot() as connection:
        await prepare(connection, HOT)
        assert await complaints(connection, HOT) == {}


FORGED = [(0, 0), (1, 1), (1, 1_000_000), (1e9, 1), (1e9, 10_000_000), (-1, 0)]


async def test_forged_statistics_change_no_plan(db: Database, admin: Connection) -> None:
    await admin.execute(FILL, "succeeded", 20_000)
    await admin.execute("ANALYZE jobs")
    wrong: dict[object, str] = {}
    for tuples, pages in FORGED:
        await admin.execute(
            "UPDATE pg_class SET reltuples = $1, relpages = $2 WHERE oid = 'jobs'::regclass"
            " OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'jobs'::regclass)",
            tuples,
            pages,
        )
        async with db.hot() as connection:
            await prepare(connection, HOT)
            wrong |= {(tuples, pages, name): bad for name, bad in (await complaints(connection, HOT)).items()}
            await connection.execute("DEALLOCATE ALL")
            await connection.reload_schema_state()
    assert wrong == {}


async def test_plans_made_for_an_empty_table_still_serve_a_full_one(db: Database, admin: Connection) -> None:
    """A long-lived connection plans once, right after the installation."""
    await admin.execute("VACUUM ANALYZE jobs")
    async with db.hot() as connection:
        await prepare(connection, HOT)
        assert await complaints(connection, HOT) == {}
        await admin.execute(FILL, "succeeded", 20_000)
        assert await complaints(connection, HOT) == {}


@after_analyzing
async def test_in_a_handlers_own_transaction_the_fence_is_a_look_up_too(misled: Database) -> None:
    async with misled.transaction() as session:
        connection = await driver(session)
        await prepare(connection, IN_A_HANDLERS_TRANSACTION)
        found: dict[object, str] = {}
        for mode in ("force_custom_plan", "force_generic_plan", "auto"):
            await connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
            found |= {
                (mode, name): bad for name, bad in (await complaints(connection, IN_A_HANDLERS_TRANSACTION)).items()
            }
    assert found == {}


async def test_in_a_handlers_transaction_plans_made_for_an_empty_table_do_not_outlive_it(
    db: Database, admin: Connection
) -> None:
    await admin.execute("VACUUM ANALYZE jobs")
    async with db.transaction() as session:
        connection = await driver(session)
        await prepare(connection, IN_A_HANDLERS_TRANSACTION)
        for name, hot in IN_A_HANDLERS_TRANSACTION.items():
            for _ in range(10 if name != "enqueue" else 0):  # Postgres settles on a generic plan after five
                await connection.execute(f"EXECUTE {prepared(name)} ({hot.arguments})")
        await admin.execute(FILL, "succeeded", 20_000)
        found = await complaints(connection, IN_A_HANDLERS_TRANSACTION)
    assert found == {}


# A plan inside a function cannot be explained. Its reads can be counted.

BACKLOG_READS = {"jobs_owner_order", "jobs_scheduled", "jobs_held"}

READS = """
SELECT relation::regclass::text AS name, pg_stat_get_xact_numscans(relation) AS scans,
       pg_stat_get_xact_tuples_returned(relation) AS rows
  FROM (SELECT 'jobs'::regclass::oid AS relation
         UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = 'jobs'::regclass) AS one
"""


async def reads(connection: Connection) -> dict[str, tuple[int, int]]:
    """How often this session has read the table `jobs` and its indexes, and how many rows."""
    return {row["name"]: (row["scans"], row["rows"]) for row in await connection.fetch(READS)}


@pytest.mark.parametrize("free_planner", [False, True])
@every_way
async def test_a_look_at_the_backlog_reads_only_what_it_counts(misled: Database, free_planner: bool) -> None:
    """KEDA and others call the function on connections whose planner is free."""
    async with misled.transaction() as session, misled.hot() as hot:
        connection = await driver(session) if free_planner else hot
        async with connection.transaction():
            before = await reads(connection)
            await read_backlog(connection, slots=10)
            after = await reads(connection)
    used = {name: after[name][1] - before[name][1] for name in after if after[name][0] > before[name][0]}
    assert set(used) <= BACKLOG_READS
    assert sum(used.values()) <= 20_100, "what is counted, and index entries that no vacuum has removed yet"


# Behaviour


async def buffers(connection: Connection, hot: Hot) -> int:
    """How many pages the statement touches, run for real and rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    name = prepared("measured")
    await connection.execute(f"PREPARE {name} AS {hot.sql}")
    answer = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({hot.arguments})")
    await transaction.rollback()
    await connection.execute(f"DEALLOCATE {name}")
    plan = json.loads(answer)[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@pytest.mark.parametrize("many", [10_000, pytest.param(50_000, marks=pytest.mark.heavy)])
async def test_what_cannot_be_claimed_does_not_lie_in_the_way_of_a_claim(
    db: Database, admin: Connection, many: int
) -> None:
    await admin.execute(FILL, "succeeded", 4 * many)
    await admin.execute(
        FILL.replace("'default', $1", "'default', 'scheduled'")
        .replace("INSERT INTO jobs (id", "INSERT INTO jobs (run_at, id")
        .replace("SELECT gen_random_uuid()", "SELECT now() + interval '1 day', gen_random_uuid()"),
        "scheduled",
        many,
    )
    await admin.execute(FILL.replace("'default', $1", "'paused', $1"), "queued", many)
    await admin.execute("INSERT INTO queues (name, paused_at) VALUES ('paused', now())")
    await some_jobs(admin, 20)
    worker = await start_worker(admin, queues=["paused", "default"])
    me = f"'{worker.id}'::uuid"
    start = "ARRAY['epoch']::timestamptz[], ARRAY['00000000-0000-0000-0000-000000000000']::uuid[]"

    def portion(queue: str) -> str:
        return (
            f"{me}, false, ARRAY['{queue}'], ARRAY['work'], ARRAY[0]::smallint[], ARRAY['acme'], ARRAY['acme'], "
            f"{start}, ARRAY[NULL]::text[], ARRAY[10], 10"
        )

    async with db.hot() as connection:
        touched = {
            "claim": await buffers(connection, Hot(claim._CLAIM, portion("default"), {})),
            "claim nothing": await buffers(connection, Hot(claim._CLAIM, portion("paused"), {})),
            "look": await buffers(connection, Hot(lanes._FIND_LANES, f"{PAIRS}, false, 100, {FROM_THE_START}", {})),
            "promote": await buffers(connection, Hot(promotion._PROMOTE, "1000, true, NULL", {})),
            "renew": await buffers(connection, Hot(lease._RENEW, f"{me}, 60", {})),
        }
    # Ten rows, each moved from one index to another: a few dozen pages each, none for what is in the way.
    assert touched["claim"] < 600
    assert touched["claim nothing"] < 60
    assert touched["look"] < 60
    assert touched["promote"] < 60
    assert touched["renew"] < 60
