"""Dead letters that nobody looks at raise an alarm."""

from __future__ import annotations

from support.clock import Clock
from support.janitor import DAY, Janitor, document
from waybill.db.database import Connection
from waybill.storage import LocalStorage


async def test_dead_letters_that_nobody_looks_at_raise_an_alarm(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await document(hot, storage, "dead_letter")
    found = (await cleaner.run())["dead_letters"].found
    assert (found["waiting"], found["old"]) == (1, 0)
    await clock.forward(2 * DAY)
    found = (await cleaner.run())["dead_letters"].found
    assert (found["waiting"], found["old"]) == (1, 1)
    assert found["oldest_seconds"] >= 2 * DAY
