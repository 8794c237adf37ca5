"""What reaches a terminal: nothing that could act on it, colours only where wanted, ids always whole."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from support.command_line import COLOURS, Waybill, assert_harmless, on_a_terminal
from support.engine import WORK, one_job, running_job, some_jobs
from waybill.console.terminal import safe
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine import NewJob, State, enqueue
from waybill_engine.control import pause
from waybill_engine.finish import RunOutcome, settle
from waybill_engine.lease import WorkerInfo, register

EVIL = "\x1b[2J\x1b]0;owned\x07[red]x[/red][link=http://evil]y[/link]:smile:\r\nfake\x9b31m\u202egnp.exe\u2028\x7f"


async def everything_evil(hot: Connection) -> str:
    """A job, a worker and a queue whose every text is hostile; the job's id."""
    evil = EVIL
    job = NewJob(WORK, evil, {"evil": evil, evil: 1}, owner=evil)
    await enqueue(hot, job)
    worker = WorkerInfo(new_id(), evil, evil, 1, evil, ["default"], ["work", evil], 1)
    await register(hot, worker, 60)
    dead = RunOutcome(State.DEAD_LETTER, "dead_lettered", code=evil, message=evil, detail={evil: evil})
    await hot.execute(
        "UPDATE jobs SET state = 'running', lease_owner = $1, lease_token = 1, started_at = now()", worker.id
    )
    await settle(hot, worker.id, [(job.id, 1, dead)])
    await pause(hot, "default", evil)
    await hot.execute("INSERT INTO job_artefacts VALUES ($1, $2, 'key', $2, 1, $2, 1, now())", job.id, evil)
    return str(job.id)


@pytest.mark.parametrize("columns", [400, 40])
async def test_nothing_a_job_says_acts_on_a_terminal(waybill: Waybill, hot: Connection, columns: int) -> None:
    job_id = await everything_evil(hot)
    for command in (("jobs", "ls"), ("jobs", "show", job_id), ("dlq", "ls"), ("queue", "stats"), ("workers", "ls")):
        ran = await waybill(*command, COLUMNS=str(columns))
        assert ran.code == 0
        assert_harmless(ran.out + ran.err)
        if columns == 400:
            assert "[red]x[/red]" in ran.out
            assert ":smile:" in ran.out


async def test_not_even_on_a_real_one(hot: Connection, database_url: str, tmp_path: Path) -> None:
    job_id = await everything_evil(hot)
    seen = await asyncio.to_thread(on_a_terminal, database_url, tmp_path, "jobs", "show", job_id)
    assert "\x1b" in seen
    assert_harmless(COLOURS.sub("", seen))


async def test_neither_does_the_json(waybill: Waybill, hot: Connection) -> None:
    job_id = await everything_evil(hot)
    ran = await waybill("jobs", "show", job_id, "--json")
    assert ran.out.isascii()
    assert not [mark for mark in ran.out if not mark.isprintable() and mark != "\n"]
    assert ran.json["tenant"] == EVIL


async def test_states_are_coloured_on_a_terminal_and_nowhere_else(
    waybill: Waybill, hot: Connection, database_url: str, tmp_path: Path
) -> None:
    await one_job(hot)
    assert "\x1b[33mqueued\x1b[0m" in await asyncio.to_thread(on_a_terminal, database_url, tmp_path, "jobs", "ls")
    without = await asyncio.to_thread(on_a_terminal, database_url, tmp_path, "jobs", "ls", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", without)
    assert "\x1b" not in (await waybill("jobs", "ls")).out


@pytest.mark.parametrize("columns", [200, 120, 100, 80, 60, 40, 20])
async def test_ids_are_whole_and_lines_fit_however_narrow(waybill: Waybill, hot: Connection, columns: int) -> None:
    worker, lease = await running_job(hot)
    jobs = await some_jobs(hot, 2)
    wordy = RunOutcome(State.FAILED, "failed", code="PARSE_ERROR", message="so many words " * 20)
    await settle(hot, worker.id, [(lease.id, lease.token, wordy)])
    ran = await waybill("jobs", "ls", COLUMNS=str(columns))
    for job in (*jobs, lease.id):
        assert str(job) in ran.out
    if columns >= 60:
        assert max(len(line) for line in ran.lines) <= columns
        assert len(ran.lines) == 4


async def test_a_pipe_gets_whole_lines(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    message = "so many words " * 20
    await settle(
        hot, worker.id, [(lease.id, lease.token, RunOutcome(State.FAILED, "failed", code="X", message=message))]
    )
    assert message.strip() in (await waybill("jobs", "ls")).lines[1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve 日本語", "naïve 日本語"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202e\u200b\ufeff", "\\u202e\\u200b\\ufeff"),
        ("\x9b", "\\x9b"),
    ],
)
def test_the_unprintable_is_written_out(text: str, shown: str) -> None:
    assert safe(text) == shown
