"""What a person does to jobs, queues and tenants is in the audit trail, in the transaction that does it."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from support.engine import Connect
from waybill import retention
from waybill.audit import Actor, acting_as
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound
from waybill.security import keys
from waybill_engine import (
    JobKind,
    NewJob,
    State,
    breaker_control,
    bulk,
    caps,
    control,
    enqueue,
    erasure,
    rates,
    schedules,
    tenants,
)
from waybill_engine.job_filter import JobFilter
from waybill_engine.rules import Pace

ALICE = Actor("command:alice@desk", address="192.0.2.1")
KIND = JobKind("audited")


async def _trail(connection: Connection) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    rows = await connection.fetch("SELECT * FROM audit_events ORDER BY id")
    assert {row["actor"] for row in rows} <= {ALICE.name}
    return [(row["action"], row["subject"], row["tenant"], json.loads(row["detail"])) for row in rows]


async def _job(connection: Connection, tenant: str = "acme") -> uuid.UUID:
    return (await enqueue(connection, NewJob(KIND, tenant=tenant))).id


async def test_what_is_done_to_a_job_by_hand_names_the_job_its_tenant_and_the_reason(connect: Connect) -> None:
    connection = await connect()
    job_id = await _job(connection)
    with acting_as(ALICE):
        await control.prioritise(connection, job_id, 5)
        await control.cancel(connection, job_id, "wrong file")
        await control.retry(connection, job_id, "right after all")
        await control.cancel(connection, job_id, "wrong")
        await control.delete(connection, job_id)
    assert [(action, detail) for action, _, _, detail in await _trail(connection)] == [
        ("job.prioritised", {"priority": 5}),
        ("job.cancelled", {"reason": "wrong file", "below": 0}),
        ("job.retried", {"reason": "right after all"}),
        ("job.cancelled", {"reason": "wrong", "below": 0}),
        ("job.deleted", {"state": "cancelled"}),
    ]
    assert {(subject, tenant) for _, subject, tenant, _ in await _trail(connection)} == {(f"job:{job_id}", "acme")}


async def test_what_is_refused_by_the_state_of_things_is_not_recorded_as_done(connect: Connect) -> None:
    connection = await connect()
    job_id = await _job(connection)
    with acting_as(ALICE):
        with pytest.raises(Conflict):
            await control.retry(connection, job_id)
        with pytest.raises(NotFound):
            await control.cancel(connection, uuid.uuid4())
        with pytest.raises(NotFound):
            await keys.revoke(connection, uuid.uuid4())
        assert not await control.resume(connection, "default")
        assert not await breaker_control.reset(connection, "gateway")
        assert not await retention.release(connection, "acme")
    assert await _trail(connection) == []


async def test_a_bulk_action_leaves_one_event_for_each_step(db: Database, connect: Connect) -> None:
    connection = await connect()
    ids = sorted([await _job(connection) for _ in range(5)])
    with acting_as(ALICE):
        async for _ in bulk.cancel(db.hot, JobFilter([State.QUEUED], kind="audited"), reason="all wrong", batch=3):
            pass
        async for _ in bulk.retry(db.hot, JobFilter([State.CANCELLED], kind="audited")):
            pass
        await control.cancel(connection, ids[0])
        async for _ in bulk.delete(db.hot, JobFilter([State.CANCELLED], kind="audited")):
            pass
    trail = await _trail(connection)
    assert [(action, detail.get("jobs")) for action, _, _, detail in trail] == [
        ("jobs.cancelled", 3),
        ("jobs.cancelled", 2),
        ("jobs.retried", 5),
        ("job.cancelled", None),
        ("jobs.deleted", 1),
    ]
    assert trail[0][3] == {"jobs": 3, "first": str(ids[0]), "last": str(ids[2]), "reason": "all wrong"}


async def test_what_an_operator_decides_is_recorded(connect: Connect) -> None:
    connection = await connect()
    schedule = schedules.Schedule("nightly", KIND, "0 3 * * *", tenant="acme")
    with acting_as(ALICE):
        await control.pause(connection, "convert", "too hot")
        await control.resume(connection, "convert")
        await breaker_control.trip(connection, "gateway", "maintenance", 60)
        await breaker_control.reset(connection, "gateway")
        await caps.set_cap(connection, 3, tenant="acme")
        await caps.remove_cap(connection, tenant="acme")
        await rates.set_rate(connection, Pace(10, 1.0), kind="audited")
        await rates.remove_rate(connection, kind="audited")
        await tenants.weigh(connection, "acme", 2.5)
        await tenants.grant_priority(connection, "acme", 7)
        await retention.set_ages(connection, "acme", {"jobs": 5, "documents": None})
        await retention.hold(connection, "acme", "a court asked")
        await retention.release(connection, "acme")
        await schedules.declare(connection, schedule)
        await schedules.declare(connection, schedule)  # as it was: nobody decided anything
        await schedules.pause(connection, "nightly", "holidays")
        await schedules.resume(connection, "nightly")
        await schedules.run_now(connection, "nightly")
        await schedules.remove(connection, "nightly")
        await erasure.request(connection, "acme")
        await erasure.request(connection, "acme")
    trail = await _trail(connection)
    assert [(action, subject) for action, subject, _, _ in trail][:-1] == [
        ("queue.paused", "queue:convert"),
        ("queue.resumed", "queue:convert"),
        ("breaker.tripped", "breaker:gateway"),
        ("breaker.reset", "breaker:gateway"),
        ("cap.set", "cap:acme/*"),
        ("cap.removed", "cap:acme/*"),
        ("rate.set", "rate:*/audited"),
        ("rate.removed", "rate:*/audited"),
        ("tenant.weighed", "tenant:acme"),
        ("tenant.priority_granted", "tenant:acme"),
        ("retention.changed", "tenant:acme"),
        ("hold.set", "tenant:acme"),
        ("hold.lifted", "tenant:acme"),
        ("schedule.created", "schedule:nightly"),
        ("schedule.paused", "schedule:nightly"),
        ("schedule.resumed", "schedule:nightly"),
        ("schedule.run", "schedule:nightly"),
        ("schedule.removed", "schedule:nightly"),
    ]
    assert (trail[-1][0], trail[-1][2]) == ("erasure.requested", "acme")
    details = {action: detail for action, _, _, detail in trail}
    assert details["breaker.tripped"] == {"reason": "maintenance", "seconds": 60}
    assert details["tenant.weighed"] == {"weight": "2.5"}
    assert details["retention.changed"] == {"jobs": 5, "documents": None}


async def test_keys_are_in_the_trail_by_their_ids_and_never_as_they_are(connect: Connect) -> None:
    connection = await connect()
    with acting_as(ALICE):
        made = await keys.create(connection, tenant="acme", name="scripts", permissions=["admin"])
        await keys.revoke(connection, made.info.id)
    rows = await connection.fetch(
        "SELECT action, subject, tenant, to_jsonb(audit_events)::text AS all FROM audit_events"
    )
    assert [(row["action"], row["subject"], row["tenant"]) for row in rows] == [
        ("key.created", f"key:{made.info.id}", "acme"),
        ("key.revoked", f"key:{made.info.id}", "acme"),
    ]
    secret = made.text.rpartition("_")[2]
    assert not any(secret in row["all"] for row in rows)
