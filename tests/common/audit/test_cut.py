"""Old events go with a signed checkpoint in their place, and what is left can still be checked."""

from __future__ import annotations

import pytest

from common.audit.conftest import Attack, Grow
from support.clock import Clock
from support.engine import Connect
from waybill import retention
from waybill.audit import record
from waybill.audit.chain import link
from waybill.audit.cut import cut, old_ones
from waybill.audit.signatures import Signer
from waybill.audit.verification import verify
from waybill.db import Database
from waybill.errors import Conflict

DAY = 86400.0


async def test_a_prefix_is_cut_by_age_and_the_rest_stays_verifiable(
    grow: Grow, db: Database, signer: Signer, connect: Connect, clock: Clock
) -> None:
    await grow(5)
    connection = await connect()
    noted = (await verify(connection, signer)).head
    await clock.forward(11 * DAY)
    await grow(2)
    assert await old_ones(connection, 0, 10, 100) == [1, 2, 3, 4, 5]
    assert await cut(db, signer, 10, 3) == 3
    assert await cut(db, signer, 10, 100) == 2
    assert await cut(db, signer, 10, 100) == 0
    while await link(db, signer):
        pass
    verdict = await verify(connection, signer, expected=noted)
    assert verdict.whole, verdict.fault
    assert (verdict.first, verdict.head.position, verdict.events) == (6, 9, 4)
    actions = await connection.fetchval("SELECT array_agg(action ORDER BY position) FROM audit_events")
    assert actions == ["queue.paused", "queue.paused", "audit.cut", "audit.cut"]


async def test_everything_may_be_old_and_the_chain_goes_on_behind_the_cut(
    grow: Grow, db: Database, signer: Signer, connect: Connect, clock: Clock
) -> None:
    await grow(2)
    await clock.forward(11 * DAY)
    assert await cut(db, signer, 10, 100) == 2
    connection = await connect()
    assert (await verify(connection, signer)).whole
    await grow(1)
    verdict = await verify(connection, signer)
    assert verdict.whole, verdict.fault
    assert (verdict.first, verdict.head.position) == (3, 4)


async def test_a_cut_that_somebody_forged_is_seen(
    grow: Grow, db: Database, signer: Signer, connect: Connect, attack: Attack, clock: Clock
) -> None:
    await grow(4)
    await clock.forward(11 * DAY)
    assert await cut(db, signer, 10, 2) == 2
    await attack(
        "UPDATE audit_checkpoints SET position = 3, hash = (SELECT hash FROM audit_events WHERE position = 3)"
        " WHERE name = 'cut'",
        "DELETE FROM audit_events WHERE position = 3",
    )
    verdict = await verify(await connect(), signer)
    assert verdict.fault is not None
    assert "'cut' at 3 was forged" in verdict.fault.says
    with pytest.raises(Conflict, match="not cut"):
        await cut(db, signer, 10, 10)


async def test_a_change_does_not_disappear_with_the_events_that_show_it(
    grow: Grow, db: Database, signer: Signer, attack: Attack, clock: Clock, connect: Connect
) -> None:
    await grow(4)
    await attack("UPDATE audit_events SET actor = 'nobody' WHERE position = 2")
    await clock.forward(11 * DAY)
    with pytest.raises(Conflict, match="event 2 does not fit"):
        await cut(db, signer, 10, 10)
    assert await (await connect()).fetchval("SELECT count(*) FROM audit_events") == 4


async def test_what_concerns_a_tenant_under_legal_hold_is_kept_and_all_behind_it(
    grow: Grow, db: Database, signer: Signer, connect: Connect, clock: Clock
) -> None:
    await grow(2)
    connection = await connect()
    await record(connection, "job.cancelled", "job:1", tenant="acme")
    await grow(2)
    await retention.hold(connection, "acme", "a court asked")
    await clock.forward(11 * DAY)
    assert await cut(db, signer, 10, 100) == 2
    assert await cut(db, signer, 10, 100) == 0
