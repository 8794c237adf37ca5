"""A flood of wrong keys: it is slowed down, costs the database little, and never keeps a right key out."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter

from support.api_fixtures import Serve
from support.api_server import Api
from support.patience import eventually
from support.statements import Statements
from waybill.db import Database
from waybill.web.wrong_keys import PER_MINUTE

FLOOD = 3 * PER_MINUTE


def wrong() -> str:
    """A key of the right form that nobody has."""
    return f"wb_{secrets.token_hex(11)}_{(secrets.token_hex(22))[:43]}"


async def test_a_flood_is_refused_with_the_time_to_wait_and_a_right_key_gets_through(api: Api, db: Database) -> None:
    right = [await api.key() for _ in range(3)]
    client, statements = api.client(), Statements()
    async with statements.counting(db):
        flood = [
            asyncio.create_task(client.get("/api/jobs", headers={"Authorization": f"Bearer {wrong()}"}))
            for _ in range(FLOOD)
        ]
        # They come from the same address, and nobody knows them yet.
        let_in = [await api.client(key).get("/api/session") for key in right]
        answers = await asyncio.gather(*flood)
    assert [answer.status_code for answer in let_in] == [200] * 3
    counted = Counter(answer.status_code for answer in answers)
    assert counted.keys() == {401, 429}
    assert counted[401] >= PER_MINUTE
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status_code == 429)
    assert {answer.json()["key"] for answer in answers if answer.status_code == 429} == {"api_key.too_many_wrong"}
    lookups = sum("FROM api_keys" in query for query in statements.sent)
    assert lookups < FLOOD / 2, f"{lookups} statements for {FLOOD} wrong keys"
    await api.context.refusals.flush()
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit_events WHERE action = 'request.refused'") <= 2


async def test_a_flood_of_sign_ins_does_not_ask_the_database_each_time(serve: Serve, db: Database) -> None:
    async with serve() as api:
        client, statements = api.client(), Statements()
        async with statements.counting(db):
            answers = await asyncio.gather(*(client.post("/session", json={"key": wrong()}) for _ in range(FLOOD)))
        assert Counter(answer.status_code for answer in answers)[401] == 10
        assert sum("rate_limits" in query for query in statements.sent) <= 2 * PER_MINUTE + 20
        right = await api.client().post("/session", json={"key": await api.key()})
        assert right.status_code == 200, "others may guess from the same address"

        async def counted() -> bool:
            await api.context.refusals.flush()
            async with db.hot() as connection:
                refused = "SELECT sum(times) FROM audit_events WHERE action = 'session.refused'"
                return bool(await connection.fetchval(refused) == FLOOD)

        await eventually(counted)
