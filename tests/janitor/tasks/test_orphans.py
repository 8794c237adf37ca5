"""Objects that no row names go, and nobody else's."""

from __future__ import annotations

from support.clock import Clock
from support.janitor import DAY, Janitor, document, janitor, named_keys, result_key, stored_keys
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.janitor.models import TaskOutcome
from waybill.storage import LocalStorage, upload_key
from waybill_convert.kinds import XML


async def test_objects_that_no_row_names_go_after_the_grace_period(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    ended = await document(hot, storage, unpublished=True)
    running = await document(hot, storage, "running", unpublished=True)
    strange = {"results/26/01/01/not-a-job/1.xml", "batches/26/01/01/of-another-pipeline", "uploads/readme.txt"}
    for key in (upload_key(new_id()), result_key(new_id(), 1, XML), *strange):
        await storage.put(key, b"x")
    await clock.forward(0.9 * DAY)
    assert await cleaner.clean() == {}
    await clock.forward(0.2 * DAY)
    assert await cleaner.would() == {"shelf": 1, "orphans": 3}
    done = await cleaner.clean()
    assert (done["orphans"], done["garbage"]) == ({"orphans": 3}, {"objects": 3})
    left = await stored_keys(storage)
    assert left == await named_keys(hot) | strange | {result_key(running, 9, XML)}
    assert result_key(ended, 1, XML) in left


async def test_a_storage_of_another_database_is_not_touched(
    db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await storage.put(result_key(new_id(), 1, XML), b"x")
    await storage.put("waybill-owner", b"somebody else")
    await clock.forward(2 * DAY)
    reports = await janitor(db, storage).run()
    assert reports["orphans"].outcome is TaskOutcome.FAILED
    assert "belongs to another database" in (reports["orphans"].error or "")
    assert len(await stored_keys(storage)) == 1
    assert {name for name, one in reports.items() if one.outcome is not TaskOutcome.DONE} == {"orphans"}
