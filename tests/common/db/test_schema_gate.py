"""The schema gate lets a pod's service start when its schema is there, and says what it waits for until then."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from support.child_processes import free_port
from waybill.db.migrations import upgrade

Gate = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    """Starts it as pods do."""
    started: list[asyncio.subprocess.Process] = []

    async def start(url: str, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "waybill.db.schema_gate",
            *arguments,
            env={**os.environ, "WAYBILL_DATABASE_URL": url, "WAYBILL_LOG_FORMAT": "json", **environment},
            stderr=asyncio.subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_schema_that_is_there_opens_it_at_once(gate: Gate, database_url: str) -> None:
    process = await gate(database_url, "0")
    _, said = await process.communicate()
    assert process.returncode == 0, said


async def test_it_says_what_it_waits_for_and_opens_when_somebody_has_migrated(
    gate: Gate, empty_database_url: str
) -> None:
    process = await gate(empty_database_url)
    assert process.stderr is not None
    line = await process.stderr.readline()
    assert b"waiting_for_schema" in line
    assert b"The database is empty" in line
    await upgrade(empty_database_url)
    assert await process.wait() == 0


async def test_it_gives_up_after_the_time_that_it_was_given(gate: Gate, empty_database_url: str) -> None:
    process = await gate(empty_database_url, "0")
    _, said = await process.communicate()
    assert process.returncode == 1
    assert b"Run: waybill migrate" in said


async def test_a_database_that_is_away_is_told_apart(gate: Gate) -> None:
    url = f"postgresql://waybill:hunter2@127.0.0.1:{free_port()}/waybill"
    process = await gate(url, "0", WAYBILL_DATABASE_CONNECT_TIMEOUT="0.1")
    _, said = await process.communicate()
    assert process.returncode == 3
    assert b"did not answer" in said
    assert b"hunter2" not in said


async def test_a_time_that_is_none_is_refused(gate: Gate, database_url: str) -> None:
    for wrong in ("soon", "-1", "inf", "nan"):
        process = await gate(database_url, wrong)
        _, said = await process.communicate()
        assert (process.returncode, b"usage" in said) == (2, True), wrong
