"""How far back a plan has to look at all.

A tenant may have an age of its own for a rule, so the shortest of all decides where looking ends; the rule then judges
each job by its own tenant's. Ids carry their time, so an age becomes an id in a primary key. That is the clock of
whoever enqueued the job: if it was an hour ahead, the job is looked at an hour late, and never too early, because the
rule judges by the database's times.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from waybill.ids import first_id_at
from waybill.retention.ages import shortest_ages

if TYPE_CHECKING:
    from waybill.db.database import Connection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cutoffs:
    now: datetime
    shortest: Mapping[str, float]
    """Of each rule, the shortest age that any tenant has."""

    @classmethod
    async def read(cls, connection: Connection) -> Cutoffs:
        return cls(*await shortest_ages(connection))

    def until(self, rule: str, default_days: float) -> uuid.UUID:
        """The last id that may be past a rule's age."""
        days = min(default_days, self.shortest.get(rule, default_days))
        return first_id_at(max(self.now - timedelta(days=days), _EPOCH))
