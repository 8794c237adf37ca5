"""What a row stopped naming is removed, by whoever's hand it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from support.clock import Clock
from support.engine import purge
from support.janitor import DAY, Janitor, document, janitor, named_keys, result_key, stored_keys
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import IoFailure
from waybill.janitor.models import TaskOutcome
from waybill.storage import LocalStorage, upload_key
from waybill_convert.kinds import XML
from waybill_convert.service import Conversions
from waybill_engine import State


async def test_files_of_what_was_deleted_or_purged_go_too(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    conversions = Conversions(db, storage, Subscriptions(db))
    deleted, purged = [await document(hot, storage, unpublished=True) for _ in range(2)]
    await conversions.delete("tenant:acme", deleted)
    assert await stored_keys(storage) == {
        upload_key(purged),
        *(result_key(purged, token, name) for token, name in ((1, XML), (1, "provenance.json"), (9, XML))),
    }, "what a person deletes is gone at once, and what was never published with it"
    await clock.forward(2 * DAY)
    assert await purge(hot, older_than=timedelta(days=1), states=[State.SUCCEEDED]) == 1
    await cleaner.clean()
    assert await stored_keys(storage) == set()
    assert await hot.fetchval("SELECT count(*) FROM garbage") == 0


async def test_a_result_that_is_replaced_leaves_garbage_not_a_leak(
    cleaner: Janitor, hot: Connection, storage: LocalStorage
) -> None:
    job = await document(hot, storage)
    again = await storage.put(result_key(job, 2, XML), b"<b/>")
    await hot.execute("UPDATE job_artefacts SET storage_key = $2 WHERE job_id = $1 AND name = 'xml'", job, again.key)
    assert await cleaner.clean() == {"garbage": {"objects": 1}}
    assert await stored_keys(storage) == await named_keys(hot)


class Stubborn(LocalStorage):
    async def delete_many(self, keys: Sequence[str]) -> None:
        if any(key.endswith(".pdf") for key in keys):
            raise IoFailure("The storage does not let this one go.")
        await super().delete_many(keys)


async def test_an_object_the_storage_keeps_is_reported_and_tried_again(
    db: Database, hot: Connection, storage: LocalStorage, tmp_path: Path, clock: Clock
) -> None:
    job = await document(hot, storage)
    await clock.forward(40 * DAY)
    reports = await janitor(db, Stubborn(tmp_path / "storage")).run()
    assert reports["garbage"].error == "The storage does not let this one go."
    assert reports["garbage"].outcome is TaskOutcome.FAILED
    assert reports["garbage"].done == {"objects": 2}, "the others went"
    assert await stored_keys(storage) == {upload_key(job)}
    assert (await janitor(db, storage).clean())["garbage"] == {"objects": 1}
    assert await stored_keys(storage) == set()
