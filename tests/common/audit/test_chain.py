"""Events come in unlinked, are linked once and in order, and nobody can change or remove them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from pathlib import Path

import asyncpg
import pytest

from common.audit.conftest import ALICE, Grow
from support.engine import Connect
from support.patience import eventually
from support.zygote import TESTS, Program
from waybill.audit import acting_as, record
from waybill.audit.chain import link, spelled
from waybill.audit.signatures import Signer
from waybill.audit.verification import verify
from waybill.db import Database


async def test_an_event_is_recorded_with_the_transaction_that_does_it_or_not_at_all(
    db: Database, signer: Signer, connect: Connect
) -> None:
    connection = await connect()
    with acting_as(ALICE), pytest.raises(RuntimeError):
        async with connection.transaction():
            await record(connection, "queue.paused", "queue:a")
            raise RuntimeError("it did not happen")
    with acting_as(ALICE):
        async with connection.transaction():
            await record(connection, "queue.resumed", "queue:a")
    assert await link(db, signer) == 1
    assert await connection.fetchval("SELECT array_agg(action) FROM audit_events") == ["queue.resumed"]


async def test_anybody_can_check_a_hash_with_the_page_of_the_documentation(grow: Grow, connect: Connect) -> None:
    """The canonical form, written once more by hand: nobody may change it by accident."""
    await grow(2)
    first, second = await (await connect()).fetch("SELECT * FROM audit_events ORDER BY position")
    text = (
        f'{{"action":"queue.paused","actor":"command:alice@desk","address":null,"at":"{spelled(second["at"])}",'
        f'"detail":{{"reason":"why 1"}},"id":"{second["id"]}","key_id":null,"outcome":"done","position":2,'
        f'"previous":"{first["hash"].hex()}","request_id":null,"session_id":null,"subject":"queue:1","tenant":null,'
        f'"times":1}}'
    )
    assert json.loads(text)["position"] == second["position"]
    assert hashlib.sha256(text.encode()).digest() == second["hash"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET actor = 'nobody'",
        "UPDATE audit_events SET position = NULL, hash = NULL",
        "UPDATE audit_events SET detail = '{}' WHERE position IS NULL",
        "UPDATE audit_events SET position = 7, hash = 'x', actor = 'nobody' WHERE position IS NULL",
        "DELETE FROM audit_events WHERE position = 1",
        "DELETE FROM audit_events WHERE position IS NULL",
        "TRUNCATE audit_events",
        "INSERT INTO audit_events SELECT * FROM audit_events WHERE position = 1",
    ],
)
async def test_the_application_can_neither_change_nor_remove_an_event(
    grow: Grow, connect: Connect, statement: str
) -> None:
    await grow(2)
    connection = await connect()
    await record(connection, "queue.resumed", "queue:a")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await connection.execute(statement)


async def test_a_transaction_that_is_still_open_does_not_keep_others_from_being_linked(
    db: Database, signer: Signer, connect: Connect
) -> None:
    slow, quick = await connect(), await connect()
    async with slow.transaction():
        await record(slow, "queue.paused", "queue:slow")
        await record(quick, "queue.paused", "queue:quick")
        assert await link(db, signer) == 1
    assert await link(db, signer) == 1
    order = await quick.fetchval("SELECT array_agg(subject ORDER BY position) FROM audit_events")
    assert order == ["queue:quick", "queue:slow"]
    assert (await verify(quick, signer)).whole


async def test_only_one_links_at_a_time(db: Database, signer: Signer, connect: Connect) -> None:
    connection = await connect()
    await record(connection, "queue.paused", "queue:a")
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('waybill audit chain', 0))")
        assert await link(db, signer) is None
    assert await link(db, signer) == 1


async def test_secrets_and_long_texts_do_not_get_into_the_trail(connect: Connect) -> None:
    connection = await connect()
    detail = {"api_key": "wb_secret", "reason": "x" * 10_000, "url": "postgres://a:hidden@b/c", "days": 1.5, "n": 2.0}
    await record(connection, "key.created", "k" * 9_000, detail=detail)
    row = await connection.fetchrow("SELECT subject, detail FROM audit_events")
    assert row is not None
    stored = json.loads(row["detail"])
    assert "secret" not in row["detail"]
    assert "hidden" not in row["detail"]
    assert (stored["days"], stored["n"], stored["api_key"]) == ("1.5", 2, "***")
    assert len(row["subject"]) == len(stored["reason"]) == 500


async def test_eight_processes_that_record_and_link_make_one_whole_chain_even_if_some_are_killed(
    database_url: str, db: Database, signer: Signer, connect: Connect, tmp_path: Path
) -> None:
    with (tmp_path / "output").open("wb") as output:

        def start(number: int, events: int) -> Program:
            arguments = (database_url, str(number), str(events))
            env = {"PYTHONPATH": str(TESTS), "PATH": os.environ["PATH"]}
            return Program("support.audit_recorder", *arguments, env=env, output=output, cwd=tmp_path)

        victims = [start(number, 0) for number in range(2)]
        others = [start(number, 10) for number in range(2, 8)]
    connection = await connect()

    async def victims_at_work() -> bool:
        by = "SELECT count(DISTINCT subject) FROM audit_events WHERE subject IN ('queue:0', 'queue:1')"
        return int(await connection.fetchval(by)) == 2

    await eventually(victims_at_work, within=60)
    for process in victims:
        process.kill()
    codes = [await asyncio.to_thread(process.wait, 60) for process in (*victims, *others)]
    assert codes == [-signal.SIGKILL] * 2 + [0] * 6, (tmp_path / "output").read_text()

    async def all_linked() -> bool:  # a killed process's transaction may take a moment to end
        await link(db, signer)
        return not await connection.fetchval("SELECT count(*) FROM audit_events WHERE position IS NULL")

    await eventually(all_linked)
    verdict = await verify(connection, signer)
    assert verdict.whole, verdict.fault
    assert verdict.events == await connection.fetchval("SELECT count(*) FROM audit_events") >= 6 * 10 + 2
