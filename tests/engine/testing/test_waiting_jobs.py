"""Seeing what was enqueued, and letting time pass for it."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from support.engine import OTHER, WORK, one_job, row, some_jobs, state
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict
from waybill_engine import NewJob, State, Unique, UniqueScope, bulk, enqueue, enqueue_family
from waybill_engine.control import cancel
from waybill_engine.job_filter import Action, JobFilter
from waybill_engine.testing import advance, enqueued, make_due


async def test_what_was_enqueued_is_found_by_kind_tenant_queue_and_payload(hot: Connection) -> None:
    await one_job(hot, WORK, payload={"to": "ada", "copies": [1, 2], "more": {"x": 1}}, priority=-2, cost=5)
    await one_job(hot, OTHER, tenant="globex", queue="night", delay=60.0, unique=Unique("k"))
    (first,) = await enqueued(hot, kind=WORK)
    assert (first.kind, first.tenant, first.owner, first.queue) == ("work", "acme", "acme", "default")
    assert (first.priority, first.cost, first.state, first.due_in) == (-2, 5, State.QUEUED, 0.0)
    assert first.payload == {"to": "ada", "copies": [1, 2], "more": {"x": 1}}
    (second,) = await enqueued(hot, tenant="globex", queue="night")
    assert (second.kind, second.state, second.unique_key) == ("other", State.SCHEDULED, "k")
    assert second.due_in is not None
    assert 0 < second.due_in <= 60
    assert [one.id for one in await enqueued(hot)] == [first.id, second.id]
    assert await enqueued(hot, kind="work", payload={"to": "ada"}) == [first]
    assert await enqueued(hot, payload={"more": {"x": 1}}) == [first]
    assert await enqueued(hot, payload={"to": "bob"}) == []


async def test_it_looks_inside_the_callers_transaction_too(db: Database) -> None:
    async with db.transaction() as session:
        job = await enqueue(session, NewJob(WORK, "acme", {"to": "ada"}))
        assert [one.id for one in await enqueued(session, payload={"to": "ada"})] == [job.id]


async def test_what_has_ended_waits_no_more_unless_it_is_asked_for(hot: Connection) -> None:
    job_id = await one_job(hot)
    await cancel(hot, job_id)
    assert await enqueued(hot) == []
    assert [one.id for one in await enqueued(hot, states=[State.CANCELLED])] == [job_id]


async def test_one_job_or_all_are_made_due(hot: Connection) -> None:
    first, second, third = await some_jobs(hot, 3, delay=1e6)
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme", delay=5)])
    assert await make_due(hot, second) == 1
    assert [await state(hot, one) for one in (first, second, third)] == ["scheduled", "queued", "scheduled"]
    assert await make_due(hot) == 3
    (parent,) = await enqueued(hot, kind=OTHER)
    assert (parent.id, parent.state, parent.pending_children, parent.due_in) == (
        family.parent.id,
        State.SCHEDULED,
        1,
        None,
    )
    for wrong in (second, family.parent.id):
        with pytest.raises(Conflict, match="not scheduled for a time"):
            await make_due(hot, wrong)


async def test_as_time_passes_jobs_become_due_windows_end_and_ended_jobs_age(db: Database, hot: Connection) -> None:
    soon, late = [await one_job(hot, delay=delay) for delay in (60.0, 600.0)]
    window = Unique("k", UniqueScope.WINDOW, 90.0)
    await one_job(hot, unique=window)
    await cancel(hot, await one_job(hot))
    old = JobFilter(older_than=timedelta(minutes=2))
    assert await bulk.count(db.hot, Action.DELETE, old) == 0
    assert await advance(hot, 59) == 0
    assert await advance(hot, 2) == 1
    assert [await state(hot, one) for one in (soon, late)] == ["queued", "scheduled"]
    assert not (await enqueue(hot, NewJob(WORK, "acme", unique=window))).created
    await advance(hot, 60)
    assert (await enqueue(hot, NewJob(WORK, "acme", unique=window))).created
    assert await bulk.count(db.hot, Action.DELETE, old) == 1
    assert (await row(hot, late))["finished_at"] is None


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
async def test_time_passes_forwards(hot: Connection, wrong: float) -> None:
    with pytest.raises(ValueError, match="forwards"):
        await advance(hot, wrong)
