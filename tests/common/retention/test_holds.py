"""Legal holds are exact."""

from __future__ import annotations

import asyncio

import pytest

from support.engine import Connect, until_blocked
from waybill import retention
from waybill.errors import Conflict


async def test_once_a_hold_is_said_nothing_is_under_way_any_more(
    connect: Connect,
) -> None:
    hot, removing, holding = await connect(), await connect(), await connect()
    async with removing.transaction():
        await retention.let_holds_wait(removing)
        said = asyncio.create_task(retention.hold(holding, "acme"))
        await until_blocked(hot, holding)
        assert not said.done()
    await said
    with pytest.raises(Conflict):
        await retention.refuse_if_held(hot, "acme")
