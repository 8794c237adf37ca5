"""Results leave: one, several, or all that an owner has.

Somebody else's job is answered like one that does not exist, except in `result`, where the product's notes demand 403.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Expired, Forbidden, NotFound, NotReady
from waybill.messages import msg
from waybill_convert.kinds import PROVENANCE, XML
from waybill_convert.repository import conversions, results, revisions
from waybill_convert.status import CONVERTED, Status

if TYPE_CHECKING:
    from waybill.db import Database

_AT_A_TIME = 500

_WHY_NOT_READY = {
    Status.FAILED: msg("convert.result_failed"),
    Status.CANCELLED: msg("convert.result_cancelled"),
}
"""For the other states, the code says it: it is not ready yet."""


def in_doubt(job_id: uuid.UUID) -> NotReady:
    """Nobody gets a result before a person has looked, and this says where."""
    return NotReady(msg("convert.result_in_doubt"), detail={"review": f"/review/{job_id}"})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A stored file that its owner may download."""

    job_id: uuid.UUID
    original_name: str
    storage_key: str
    media_type: str
    bytes: int
    sha256: str | None = None


class Downloads:
    """The service; one per process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def result(self, owner: str, job_id: uuid.UUID, name: str = XML) -> StoredFile:
        """A file of a finished conversion's latest revision. Somebody else's is Forbidden, as the notes demand."""
        async with self._database.hot() as connection:
            row = await conversions.get(connection, job_id)
            if row is None:
                raise NotFound(msg("convert.no_job"))
            if row["owner"] != owner:
                audit.refuse("job.foreign", f"job:{job_id}", tenant=row["tenant"])
                raise Forbidden(msg("convert.not_your_result"))
            status = Status(row["status"])
            if status is Status.EXPIRED:
                raise Expired()
            if status is Status.NEEDS_REVIEW and name == XML:
                raise in_doubt(job_id)
            if status not in CONVERTED:
                raise NotReady(_WHY_NOT_READY.get(status))
            found = await revisions.file(connection, job_id, row["revision"], name)
        if found is None:
            raise Expired() if name == XML else NotFound(msg("convert.no_file"))
        return StoredFile(job_id, row["original_name"], *found)

    async def provenance(self, owner: str, job_id: uuid.UUID) -> StoredFile:
        """The record with its provenance. Somebody else's job looks like a missing one."""
        try:
            return await self.result(owner, job_id, PROVENANCE)
        except Forbidden:
            raise NotFound(msg("convert.no_job")) from None

    async def results(self, owner: str, job_ids: Sequence[uuid.UUID]) -> list[StoredFile]:
        """Several results. The first one that is not ready raises why."""
        return [await self.result(owner, job_id) for job_id in dict.fromkeys(job_ids)]

    async def every_result(self, owner: str) -> AsyncIterator[StoredFile]:
        """All results that are ready now, newest first, without those that are removed during the iteration.

        No connection is kept between batches, because clients may download slowly.
        """
        async with self._database.hot() as connection:
            ready = await results.ready(connection, owner)
            in_doubt = not ready and await results.wait_for_review(connection, owner)
        if in_doubt:
            raise NotReady(msg("convert.all_in_doubt"), detail={"review": f"/queue?status={Status.NEEDS_REVIEW}"})
        if not ready:
            raise NotReady(msg("convert.nothing_ready"))
        for at in range(0, len(ready), _AT_A_TIME):
            async with self._database.hot() as connection:
                rows = await results.xml_of(connection, owner, ready[at : at + _AT_A_TIME])
            for row in rows:
                yield StoredFile(
                    row["job_id"], row["original_name"], row["storage_key"], "application/xml", row["bytes"]
                )

    async def note_downloaded(self, job_ids: Sequence[uuid.UUID]) -> None:
        async with self._database.hot() as connection:
            await results.note_downloaded(connection, job_ids)
