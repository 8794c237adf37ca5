"""What `waybill jobs show` says of a conversion: the mapping that was asked for, the one that was used, and why."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from waybill_convert.repository import conversions
from waybill_convert.views import ScoredMapping, recognised

if TYPE_CHECKING:
    from waybill.db.database import Connection


async def job_facts(connection: Connection, job_id: uuid.UUID) -> dict[str, str]:
    """Names and texts; none for a job that is no conversion."""
    row = await conversions.get(connection, job_id)
    if row is None:
        return {}
    facts = {"mapping": row["mapping"]}
    found = recognised(row)
    if found is None:
        return facts
    facts |= {"requested": row["requested_mapping"], "recognised": f"{found.title}, score {found.score} by {found.by}"}
    return facts | ({"runner-up": _scored(found.runner_up)} if found.runner_up is not None else {})


def _scored(one: ScoredMapping) -> str:
    return f"{one.name}, score {one.score}"
