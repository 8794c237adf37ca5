"""From when on things may be past their time: how far a plan has to look at all.

Each tenant may have limits of its own, so the shortest of all decides where looking ends; the view `retained` then
judges each job by its own tenant's. Ids carry their time, so an id is where a limit falls in a primary key.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from waybill.config import JanitorSettings
from waybill.ids import first_id_at

if TYPE_CHECKING:
    from waybill.db.database import Connection

FIRST_ID = uuid.UUID(int=0)
LAST_ID = uuid.UUID(int=2**128 - 1)

_SHORTEST = """
SELECT now() AS now, min(pdf_ttl_days) AS pdf, min(xml_ttl_days) AS xml, min(events_ttl_days) AS events,
       min(jobs_ttl_days) AS jobs, COALESCE(bool_or(xml_on_download), false) AS on_download
  FROM tenants
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """The last ids worth looking at."""

    documents: uuid.UUID
    results: uuid.UUID
    events: uuid.UUID
    jobs: uuid.UUID
    on_download: bool
    """Whether anybody's results go once they were downloaded."""


async def limits(connection: Connection, settings: JanitorSettings) -> Limits:
    row = await connection.fetchrow(_SHORTEST)
    assert row is not None  # noqa: S101 - aggregates always answer

    def until(default: float, shortest: float | None) -> uuid.UUID:
        days = default if shortest is None else min(default, shortest)
        return first_id_at(max(row["now"] - timedelta(days=days), datetime(1970, 1, 1, tzinfo=UTC)))

    return Limits(
        documents=until(settings.pdf_ttl_days, row["pdf"]),
        results=until(settings.xml_ttl_days, row["xml"]),
        events=until(settings.events_ttl_days, row["events"]),
        jobs=until(settings.jobs_ttl_days, row["jobs"]),
        on_download=settings.xml_on_download or row["on_download"],
    )
