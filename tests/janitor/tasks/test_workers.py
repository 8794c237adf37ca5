"""Workers gone for long leave the list."""

from __future__ import annotations

from support.clock import Clock
from support.engine import start_worker
from support.janitor import DAY, Janitor
from waybill.db.database import Connection


async def test_workers_gone_for_long_leave_the_list(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    gone, there = await start_worker(hot), await start_worker(hot)
    await hot.execute("UPDATE workers SET state = 'gone', stopped_at = now() WHERE id = $1", gone.id)
    await clock.forward(6 * DAY)
    await hot.execute("UPDATE workers SET lease_expires_at = now() + interval '9 days' WHERE id = $1", there.id)
    assert "workers" not in await cleaner.clean()
    await clock.forward(2 * DAY)
    assert (await cleaner.clean())["workers"] == {"workers": 1}
    assert [row["id"] for row in await hot.fetch("SELECT id FROM workers")] == [there.id]
