"""A sequence that nobody advanced goes on."""

from __future__ import annotations

from support.engine import WORK, find_contradictions, one_job, start_worker, state, take
from support.janitor import Janitor
from waybill.db.database import Connection
from waybill_engine import SequenceKey, State
from waybill_engine.finish import succeed
from waybill_janitor.tasks.sequences import Sequences

END_AS_RELEASE_0_1_0_DOES = """
UPDATE jobs SET state = 'succeeded', lease_owner = NULL, finished_at = now() WHERE id = $1
"""


async def test_the_next_job_is_let_in_although_an_old_worker_forgot_it(cleaner: Janitor, hot: Connection) -> None:
    sequence = SequenceKey("k")
    first, second, third = [await one_job(hot, WORK, sequence=sequence) for _ in range(3)]
    for number in range(3):
        await one_job(hot, WORK, sequence=SequenceKey(f"well {number}"))
        await one_job(hot, WORK, sequence=SequenceKey(f"well {number}"))
    worker = await start_worker(hot)
    claimed = {one.id: one for one in await take(hot, worker)}
    await hot.execute(END_AS_RELEASE_0_1_0_DOES, first)
    assert await state(hot, second) is State.SCHEDULED
    reports = await cleaner.run([Sequences(cleaner.tools)])
    assert reports["sequences"].done == {"advanced": 1}
    assert (await state(hot, second), await state(hot, third)) == (State.QUEUED, State.SCHEDULED)
    assert (await cleaner.run([Sequences(cleaner.tools)]))["sequences"].done == {}
    for one in claimed.values():
        if one.id != first:
            await succeed(hot, worker.id, [(one.id, one.token)])
    assert [one for one in await find_contradictions(hot) if "exactly one end" not in one] == []
