"""Files whose writer was killed: parts of documents that no row names and no listing shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_janitor.scan_cursor import resume
from waybill_janitor.settings import JanitorSettings


class Abandoned:
    name = "abandoned"
    items = "files whose writer was killed"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._settings = tools.settings_of(JanitorSettings)
        self._older_than: float | None = None

    async def plan(self) -> AsyncIterator[Batch]:
        # What release 0.1.0 left can lie in any folder, so that all of them are gone through, once in a while.
        interval = self._settings.janitor_scan_interval
        async with self._tools.database.hot() as connection:
            scan = await resume(connection, self.name, interval, anew=self._tools.compare_all)
        self._older_than = None if scan.rests else self._settings.orphan_grace
        found = await self._tools.storage.remove_abandoned(older_than=self._older_than, dry_run=True)
        yield Batch(range(found), cursor=None if scan.rests else scan.over())

    async def do(self, _batch: Batch) -> Tally:
        # Looked for again: another process may have died meanwhile, and one that lives loses nothing.
        removed = await self._tools.storage.remove_abandoned(older_than=self._older_than)
        return Tally(Counter(files=removed))
