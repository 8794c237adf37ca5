"""The audit trail: link what nobody has linked yet, and cut off what is old."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from waybill.audit.chain import BATCH as LINKED_TOGETHER
from waybill.audit.chain import count_unlinked, link, renew
from waybill.audit.cut import cut, old_ones
from waybill.audit.signatures import Signer
from waybill.errors import Conflict
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill_janitor.settings import JanitorSettings

_LINK = "link"


class AuditTrail:
    name = "audit"
    items = "events to link or to remove"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._settings = tools.settings_of(JanitorSettings)

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            left = await count_unlinked(connection)
        while left > 0:
            yield Batch([_LINK] * min(left, LINKED_TOGETHER))
            left -= LINKED_TOGETHER
        after = 0
        while True:
            async with self._tools.database.hot() as connection:
                positions = await old_ones(connection, after, self._settings.audit_ttl_days, BATCH)
            if not positions:
                return
            after = positions[-1]
            yield Batch(positions)

    async def do(self, batch: Batch) -> Tally:
        database = self._tools.database
        async with database.hot() as connection:
            signer = await Signer.of(self._settings, connection)
        await renew(database, signer)
        if batch.items[0] == _LINK:
            return Tally(Counter(linked=await link(database, signer) or 0))
        try:
            return Tally(Counter(events=await cut(database, signer, self._settings.audit_ttl_days, len(batch.items))))
        except Conflict as error:  # somebody must look at it; the other tasks go on
            return Tally(trouble=error.message)
