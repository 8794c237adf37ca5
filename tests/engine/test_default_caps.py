"""A cap that workers bring along: in force until an operator decides, and never over what was decided."""

from __future__ import annotations

import asyncio

from support.engine import Connect, until_blocked
from waybill.db.database import Connection
from waybill_engine.caps import cap_by_default, list_caps, remove_cap, set_cap


async def caps(connection: Connection) -> dict[tuple[str | None, str | None], int]:
    return {(cap.tenant, cap.kind): cap.most for cap in await list_caps(connection)}


async def test_a_default_holds_and_follows_its_setting(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf", "extract_file"], 32)
    assert await caps(hot) == {(None, "convert_pdf"): 32, (None, "extract_file"): 32}
    await cap_by_default(hot, ["convert_pdf"], 8)
    assert await caps(hot) == {(None, "convert_pdf"): 8, (None, "extract_file"): 32}
    await cap_by_default(hot, ["convert_pdf"], 0)
    assert await caps(hot) == {(None, "extract_file"): 32}
    await cap_by_default(hot, [], 5)
    assert await caps(hot) == {(None, "extract_file"): 32}


async def test_what_an_operator_set_stays_though_it_is_the_default_number(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf"], 32)
    await set_cap(hot, 32, kind="convert_pdf")
    for most in (4, 0):
        await cap_by_default(hot, ["convert_pdf"], most)
        assert await caps(hot) == {(None, "convert_pdf"): 32}


async def test_what_an_operator_lifted_stays_lifted(connect: Connect) -> None:
    hot = await connect()
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await remove_cap(hot, kind="convert_pdf")
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await caps(hot) == {}


async def test_a_tenants_cap_is_another_matter(connect: Connect) -> None:
    hot = await connect()
    await set_cap(hot, 2, tenant="acme", kind="convert_pdf")
    await set_cap(hot, 3, tenant="acme")
    await cap_by_default(hot, ["convert_pdf"], 32)
    assert await caps(hot) == {(None, "convert_pdf"): 32, ("acme", None): 3, ("acme", "convert_pdf"): 2}


async def test_a_decision_made_while_a_worker_starts_is_kept(connect: Connect) -> None:
    operator, starting = await connect(), await connect()
    decision = operator.transaction()
    await decision.start()
    await set_cap(operator, 4, kind="convert_pdf")
    default = asyncio.create_task(cap_by_default(starting, ["convert_pdf"], 32))
    await until_blocked(await connect(), starting)
    await decision.commit()
    await default
    assert await caps(operator) == {(None, "convert_pdf"): 4}
