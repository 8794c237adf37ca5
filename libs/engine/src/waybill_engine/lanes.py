"""Where jobs wait: lanes, and the rules about them.

A lane is what can be claimed in one go, oldest first: the queued jobs of one queue, kind, priority and tenant. Only
lanes with something in them exist, and they exist only in the index `jobs_lanes`. Finding them means hopping through
that index from head to head, so it costs by the lane and not by the job.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_LANES = 10_000
"""Lanes one look finds; beyond that, the rest comes to light as these are emptied."""


class Lane(NamedTuple):
    queue: str
    kind: str
    priority: int
    tenant: str


@dataclass(frozen=True, slots=True)
class Cap:
    """At most so many jobs of a tenant, of a kind, or of both at once, in the whole cluster. None: of any."""

    id: int
    tenant: str | None
    kind: str | None
    most: int


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator, or a sick dependency, says about who may run."""

    caps: Sequence[Cap] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    """Dependencies whose breaker is not closed, and since when it is as it is."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of the tenants whose weight is not 1."""


# One statement for both, because an idle worker should cost as good as nothing: the last row has the rules.
#
# From head to head: the next tenant of the same priority, or the first of the next lower one. `UNION ALL` tries the
# second only when the first finds nothing.
_LOOK = """
WITH RECURSIVE served AS MATERIALIZED (
    SELECT queue, kind
      FROM unnest($1::text[]) AS queue, unnest($2::text[]) AS kind
     WHERE NOT EXISTS (SELECT FROM queues WHERE name = queue AND paused_at IS NOT NULL)
), lane AS (
    SELECT served.queue, served.kind, head.priority, head.tenant, head.id
      FROM served, LATERAL (
               SELECT priority, tenant, id FROM jobs
                WHERE queue = served.queue AND kind = served.kind AND isolate = $3 AND state = 'queued'
                ORDER BY priority DESC, tenant, id
                LIMIT 1
           ) AS head
    UNION ALL
    SELECT lane.queue, lane.kind, next.priority, next.tenant, next.id
      FROM lane, LATERAL (
               (SELECT priority, tenant, id FROM jobs
                 WHERE queue = lane.queue AND kind = lane.kind AND isolate = $3 AND priority = lane.priority
                   AND tenant > lane.tenant AND state = 'queued'
                 ORDER BY tenant, id
                 LIMIT 1)
               UNION ALL
               (SELECT priority, tenant, id FROM jobs
                 WHERE queue = lane.queue AND kind = lane.kind AND isolate = $3 AND priority < lane.priority
                   AND state = 'queued'
                 ORDER BY priority DESC, tenant, id
                 LIMIT 1)
               LIMIT 1
           ) AS next
)
(SELECT queue, kind, priority, tenant, id, NULL::json AS rules FROM lane LIMIT $4)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, json_build_object(
           'caps', (SELECT json_agg(json_build_array(id, tenant, kind, most) ORDER BY id) FROM caps),
           'held', (SELECT json_object_agg(name, since) FROM breakers WHERE state <> 'closed'),
           'weights', (SELECT json_object_agg(name, weight) FROM tenants WHERE weight <> 1))
"""


async def look(
    connection: Connection, queues: Sequence[str], kinds: Sequence[str], *, isolated: bool = False
) -> tuple[dict[Lane, uuid.UUID], Rules]:
    """Every lane that has something in it, with the job at its head, and the rules. Paused queues are left out."""
    rows = await connection.fetch(_LOOK, list(dict.fromkeys(queues)), list(dict.fromkeys(kinds)), isolated, MOST_LANES)
    rules = json.loads(rows.pop()["rules"])
    return {Lane(*row[:4]): row["id"] for row in rows}, Rules(
        caps=tuple(Cap(*cap) for cap in rules["caps"] or ()),
        held=rules["held"] or {},
        weights=rules["weights"] or {},
    )


def announced(payload: str) -> tuple[Lane, uuid.UUID] | None:
    """What a notification says of one lane: that it has something, from this job on. None if it names only a queue."""
    if not payload.startswith("["):
        return None
    # Whoever may connect may notify: what does not fit is not believed.
    queue, kind, priority, tenant, first = json.loads(payload)
    texts = all(isinstance(text, str) for text in (queue, kind, tenant, first))
    if not texts or type(priority) is not int or not -32768 <= priority <= 32767:
        raise ValueError(payload)
    return Lane(queue, kind, priority, tenant), uuid.UUID(first)
