"""`waybill dlq`: what ended in the dead-letter queue, and giving it another chance."""

from __future__ import annotations

import uuid

import pytest

from support.command_line import Waybill
from support.engine import OTHER, WORK, one_job, running_job, state
from waybill.db.database import Connection
from waybill_engine import JobKind, State, Unique
from waybill_engine.control import cancel
from waybill_engine.finish import RunOutcome, settle

DEAD = RunOutcome(State.DEAD_LETTER, "dead_lettered", charge=1, code="GW_5XX", message="no luck")


async def dead_letter(hot: Connection, kind: JobKind = WORK, unique: str | None = None) -> uuid.UUID:
    worker, lease = await running_job(hot, kind, unique=Unique(unique) if unique else None)
    await settle(hot, worker.id, [(lease.id, lease.token, DEAD)])
    return lease.id


async def test_dead_letters_are_listed_with_their_cause(waybill: Waybill, hot: Connection) -> None:
    job_id, other = await dead_letter(hot), await dead_letter(hot, OTHER)
    await one_job(hot)
    ran = await waybill("dlq", "ls")
    assert [line.split()[0] for line in ran.lines] == ["ID", str(other), str(job_id)]
    assert ran.lines[2].endswith("GW_5XX: no luck")
    narrowed = await waybill("dlq", "ls", "--kind", "other", "--json")
    assert [job["id"] for job in narrowed.json["jobs"]] == [str(other)]


async def test_no_dead_letters(waybill: Waybill, database_url: str) -> None:
    ran = await waybill("dlq", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "No dead letters.\n"
    assert (await waybill("dlq", "retry", "--all")).code == 0


async def test_named_dead_letters_are_retried_and_nothing_else(waybill: Waybill, hot: Connection) -> None:
    dead, stopped = await dead_letter(hot), await one_job(hot)
    await cancel(hot, stopped)
    ran = await waybill("dlq", "retry", dead, stopped)
    assert (ran.code, ran.out) == (1, f"{dead} queued again\n")
    assert "not a dead letter" in ran.err
    assert (await state(hot, dead), await state(hot, stopped)) == (State.QUEUED, State.CANCELLED)


async def test_all_of_a_kind_are_retried(waybill: Waybill, hot: Connection) -> None:
    dead, other = await dead_letter(hot), await dead_letter(hot, OTHER)
    assert (await waybill("dlq", "retry", "--all", "--kind", "work")).out == "Queued 1 job again.\n"
    assert (await state(hot, dead), await state(hot, other)) == (State.QUEUED, State.DEAD_LETTER)


async def test_what_cannot_be_retried_is_told(waybill: Waybill, hot: Connection) -> None:
    dead = await dead_letter(hot, unique="key")
    await one_job(hot, unique=Unique("key"))
    ran = await waybill("dlq", "retry", "--all", "--json")
    assert ran.code == 1
    assert ran.json == {"retried": [], "left": [str(dead)]}
    assert "1 job could not be changed: another job has the unique key" in ran.err


@pytest.mark.parametrize("wrong", [(), ("--kind", "work"), ("--all", "019a8b2c"), ("019a8b2c", "--tenant", "acme")])
async def test_ids_or_all_but_not_both(waybill: Waybill, wrong: tuple[str, ...], database_url: str) -> None:
    assert (await waybill("dlq", "retry", *wrong)).code == 2
