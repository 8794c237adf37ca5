"""A trail with some events, and ways to tamper with it that the application does not have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from support.audit_recorder import SECRET
from support.engine import Connect
from waybill.audit import Actor, acting_as, record
from waybill.audit.chain import link
from waybill.audit.signatures import Signer
from waybill.db import Database

ALICE = Actor("command:alice@desk")

Grow = Callable[[int], Awaitable[None]]
Attack = Callable[..., Awaitable[None]]


@pytest.fixture
def signer() -> Signer:
    return Signer(SECRET)


@pytest.fixture
def grow(db: Database, signer: Signer) -> Grow:
    """Records so many events, each in its own transaction, and links them."""

    async def events(number: int) -> None:
        for index in range(number):
            async with db.hot() as connection:
                with acting_as(ALICE):
                    await record(connection, "queue.paused", f"queue:{index}", detail={"reason": f"why {index}"})
        while await link(db, signer):
            pass

    return events


@pytest.fixture
def attack(connect: Connect) -> Attack:
    """Runs statements as somebody who may alter the table."""

    async def run(*statements: str) -> None:
        connection = await connect()
        await connection.execute("ALTER TABLE audit_events DISABLE TRIGGER ALL")
        for statement in statements:
            await connection.execute(statement)
        await connection.execute("ALTER TABLE audit_events ENABLE TRIGGER ALL")

    return run
