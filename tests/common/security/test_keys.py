"""API keys: shown once, kept as a hash, good until they are not."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from support.clock import Clock
from support.engine import Connect
from waybill.db.database import Connection
from waybill.errors import NotFound, Refused, Unauthorized
from waybill.ids import new_id
from waybill.security import ADMIN, keys
from waybill.security.secrets import shared_secret


@pytest.fixture
async def hot(connect: Connect) -> Connection:
    return await connect()


async def test_a_key_is_recognised_and_its_secret_is_nowhere(hot: Connection) -> None:
    made = await keys.create(hot, tenant="acme", name="erp", permissions=["convert:read"])
    assert re.fullmatch(r"wb_[0-9A-Za-z]{22}_[0-9A-Za-z]{43}", made.text)
    found = await keys.verify(hot, made.text)
    assert (found.id, found.tenant, found.principal.owner) == (made.info.id, "acme", "tenant:acme")
    assert found.principal.may("convert:read")
    assert not found.principal.may("convert:write")
    row = str(await hot.fetchrow("SELECT * FROM api_keys"))
    assert made.text[-43:] not in row
    assert found.hint == made.text[-4:]


async def test_what_is_almost_a_key_is_none(hot: Connection) -> None:
    text = (await keys.create(hot, tenant="acme", name="erp", permissions=[ADMIN])).text
    other = (await keys.create(hot, tenant="evil", name="own", permissions=[ADMIN])).text
    for wrong in (
        "",
        "wb_",
        text[:-1],
        text + "a",
        text.upper(),
        text[:26] + other[26:],
        other[:26] + text[26:],
        "wb_" + "z" * 22 + text[25:],
        text.replace("wb_", "wc_"),
        " " + text,
    ):
        with pytest.raises(Unauthorized):
            await keys.verify(hot, wrong)


async def test_keys_end(hot: Connection, clock: Clock) -> None:
    short = await keys.create(hot, tenant="acme", name="short", permissions=[ADMIN], expires_in=60)
    long = await keys.create(hot, tenant="acme", name="long", permissions=[ADMIN])
    await clock.forward(61)
    with pytest.raises(Unauthorized, match="expired"):
        await keys.verify(hot, short.text)
    assert (await keys.revoke(hot, long.info.id)).state == "revoked"
    with pytest.raises(Unauthorized, match="revoked"):
        await keys.verify(hot, long.text)
    with pytest.raises(Unauthorized):
        await keys.find(hot, long.info.id)
    with pytest.raises(NotFound):
        await keys.revoke(hot, new_id())
    assert [info.state for info in await keys.ls(hot)] == ["expired", "revoked"]
    assert await keys.ls(hot, tenant="nobody") == []


async def test_use_is_noted_now_and_then(hot: Connection, clock: Clock) -> None:
    made = await keys.create(hot, tenant="acme", name="erp", permissions=[ADMIN])
    times = set()
    for seconds in (0, 10, 10, 100):
        await clock.forward(seconds)
        await keys.verify(hot, made.text)
        times.add(await hot.fetchval("SELECT last_used_at FROM api_keys"))
    assert len(times) == 2


async def test_nonsense_is_refused(hot: Connection) -> None:
    wrong: list[dict[str, Any]] = [
        {"tenant": "public"},
        {"tenant": "Acme"},
        {"tenant": ""},
        {"tenant": "a" * 64},
        {"name": ""},
        {"name": "x\n"},
        {"permissions": []},
        {"expires_in": 0},
        {"expires_in": float("inf")},
    ]
    for facts in wrong:
        given: dict[str, Any] = {"tenant": "acme", "name": "erp", "permissions": [ADMIN], **facts}
        with pytest.raises(Refused):
            await keys.create(hot, **given)


async def test_there_is_one_first_admin_key_however_many_start_at_once(connect: Connect, clock: Clock) -> None:
    connections = [await connect() for _ in range(5)]
    made = await asyncio.gather(*(keys.create_first_admin(each) for each in connections))
    (first,) = [one for one in made if one is not None]
    assert await keys.create_first_admin(connections[0]) is None
    await keys.revoke(connections[0], first.info.id)
    assert await keys.create_first_admin(connections[0]) is not None, "without one nobody could come in"


async def test_replicas_agree_on_a_secret(connect: Connect) -> None:
    connections = [await connect() for _ in range(5)]
    found = await asyncio.gather(*(shared_secret(each, "sessions") for each in connections))
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert await shared_secret(connections[0], "other") != found[0]


MADE_ELSEWHERE = "wb_0Kx3vRq9TmB2nZc7LwYp5d_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"


async def ensure_admin(connection: Connection) -> keys.EnsuredKey:
    return await keys.ensure(connection, MADE_ELSEWHERE, tenant="admin", name="first admin key", permissions=[ADMIN])


async def test_a_key_that_was_made_elsewhere_is_registered_once_and_told_in_the_audit_trail(hot: Connection) -> None:
    first, again = await ensure_admin(hot), await ensure_admin(hot)
    assert (first.new, again.new, first.info.id) == (True, False, again.info.id)
    found = await keys.verify(hot, MADE_ELSEWHERE)
    assert (found.tenant, found.name, found.permissions) == ("admin", "first admin key", frozenset({ADMIN}))
    audited = await hot.fetch("SELECT subject FROM audit_events WHERE action = 'key.created'")
    assert [row["subject"] for row in audited] == [f"key:{first.info.id}"]
    assert MADE_ELSEWHERE[-43:] not in str(await hot.fetch("SELECT * FROM api_keys"))


async def test_many_may_register_the_same_key_at_once(connect: Connect, hot: Connection) -> None:
    connections = [await connect() for _ in range(4)]
    ensured = await asyncio.gather(*(ensure_admin(one) for one in connections))
    assert sorted(one.new for one in ensured) == [False, False, False, True]
    assert await hot.fetchval("SELECT count(*) FROM audit_events WHERE action = 'key.created'") == 1


async def test_a_key_that_was_revoked_is_not_brought_back(hot: Connection) -> None:
    await keys.revoke(hot, (await ensure_admin(hot)).info.id)
    assert (await ensure_admin(hot)).info.state == "revoked"
    with pytest.raises(Unauthorized):
        await keys.verify(hot, MADE_ELSEWHERE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no API key"),
        ("admin", "no API key"),
        ("wb_" + "z" * 22 + MADE_ELSEWHERE[25:], "no API key"),
        (MADE_ELSEWHERE[:26] + "a" * 43, "easy to guess"),
        (MADE_ELSEWHERE[:26] + ("password" * 6)[:43], "easy to guess"),
    ],
)
async def test_a_key_that_is_none_or_weak_is_not_registered(hot: Connection, text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        await keys.ensure(hot, text, tenant="admin", name="key", permissions=[ADMIN])
    assert len(text) < 20 or text[26:] not in str(refused.value)
    assert await keys.ls(hot) == []


async def test_a_registered_key_is_not_given_to_somebody_else(hot: Connection) -> None:
    await keys.ensure(hot, MADE_ELSEWHERE, tenant="acme", name="key", permissions=["convert:read"])
    for tenant, permission in (("evil", "convert:read"), ("acme", ADMIN)):
        with pytest.raises(Refused, match="registered for the tenant 'acme'"):
            await keys.ensure(hot, MADE_ELSEWHERE, tenant=tenant, name="key", permissions=[permission])
    same_id = MADE_ELSEWHERE[:26] + MADE_ELSEWHERE[26:][::-1]
    with pytest.raises(Refused, match="Another API key"):
        await keys.ensure(hot, same_id, tenant="acme", name="key", permissions=["convert:read"])
    assert (await keys.verify(hot, MADE_ELSEWHERE)).permissions == {"convert:read"}
