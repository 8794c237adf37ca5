"""Jobs that the SQL function enqueues are counted once, and only if they were created and committed."""

from __future__ import annotations

import pytest

from support.engine import WORK
from waybill.db.database import Connection
from waybill_engine import breaker, enqueued_elsewhere, samples
from waybill_engine.enqueued_elsewhere import BY_COMMAND, BY_SQL, FEW, add, totals
from waybill_engine.kind_limits import record_limits

_ENQUEUE = "SELECT created FROM waybill_enqueue('work', 'acme', unique_key => $1)"


@pytest.fixture(autouse=True)
async def _known(hot: Connection) -> None:
    await breaker.register_kinds(hot, {"work": []})
    await record_limits(hot, [WORK])


async def test_only_what_was_created_and_committed_is_counted(hot: Connection) -> None:
    assert [await hot.fetchval(_ENQUEUE, key) for key in ("one", "one", "two", None)] == [True, False, True, True]
    with pytest.raises(ZeroDivisionError):
        async with hot.transaction():
            await hot.fetchval(_ENQUEUE, "three")
            raise ZeroDivisionError
    assert await totals(hot) == {("work", BY_SQL): 3}


async def test_a_sample_adds_up_what_many_callers_left_and_loses_nothing(hot: Connection) -> None:
    await hot.fetch("SELECT waybill_enqueue('work', 'acme') FROM generate_series(1, $1::int)", FEW + 1)
    await add(hot, "work", BY_COMMAND, 2)
    before = await totals(hot)
    assert before == {("work", BY_SQL): FEW + 1, ("work", BY_COMMAND): 2}
    assert await samples.take_if_due(hot, 0.0)
    assert await totals(hot) == before
    assert await hot.fetchval("SELECT count(*) FROM enqueued_elsewhere") == 2
    await enqueued_elsewhere.add_up(hot)
    assert await totals(hot) == before
