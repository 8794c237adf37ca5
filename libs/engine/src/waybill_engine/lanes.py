"""Lanes: where jobs wait.

A lane is what one claim can take oldest first: the queued jobs of one queue, kind, priority and tenant. Only lanes that
have jobs exist, and they exist only in the index `jobs_lanes`. Finding them means hopping through that index from the
head of one lane to the head of the next, so it costs by the lane and not by the job.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.rules import Cap, Rate, Rules, caps_on, queue_is_paused, rates_on

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_LANES = 10_000
"""The most lanes one look finds. The rest come to light as these are emptied."""


class Lane(NamedTuple):
    queue: str
    kind: str
    priority: int
    tenant: str


# One statement finds both lanes and rules, so that an idle worker costs next to nothing. The last row has the rules.
#
# From one head, the next is the next tenant of the same priority or the first of the next lower priority. `UNION ALL`
# tries the second only when the first finds nothing.
_FIND_LANES = f"""
WITH RECURSIVE served AS MATERIALIZED (
    SELECT queue, kind
      FROM unnest($1::text[]) AS queue, unnest($2::text[]) AS kind
     WHERE NOT {queue_is_paused("queue")}
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
), found AS MATERIALIZED (
    SELECT queue, kind, priority, tenant, id FROM lane LIMIT $4
), whose AS MATERIALIZED (
    SELECT DISTINCT tenant, kind FROM found
), limiting AS MATERIALIZED (
    SELECT DISTINCT one.id, one.tenant, one.kind, one.most FROM whose, LATERAL {caps_on("whose")} AS one
), pacing AS MATERIALIZED (
    SELECT DISTINCT one.id, one.tenant, one.kind, one.most, one.seconds, one.burst
      FROM whose, LATERAL {rates_on("whose")} AS one
)
SELECT queue, kind, priority, tenant, id, NULL::json AS rules FROM found
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, json_build_object(
           'caps', (SELECT json_agg(json_build_array(id, tenant, kind, most) ORDER BY id) FROM limiting),
           'rates', (SELECT json_agg(json_build_array(id, tenant, kind, most, seconds, burst) ORDER BY id) FROM pacing),
           'more', EXISTS (SELECT FROM caps WHERE id NOT IN (SELECT id FROM limiting))
                   OR EXISTS (SELECT FROM rates WHERE most IS NOT NULL AND id NOT IN (SELECT id FROM pacing)),
           'blocked', (SELECT json_object_agg(name, since) FROM breakers WHERE state <> 'closed'),
           'weights', (SELECT json_object_agg(name, weight) FROM tenants WHERE weight <> 1))
"""  # noqa: S608 - made of constants


async def find_lanes(
    connection: Connection, queues: Sequence[str], kinds: Sequence[str], *, isolated: bool = False
) -> tuple[dict[Lane, uuid.UUID], Rules]:
    """Every lane that has jobs, with the job at its head, and the rules. Paused queues are left out."""
    rows = await connection.fetch(
        _FIND_LANES, list(dict.fromkeys(queues)), list(dict.fromkeys(kinds)), isolated, MOST_LANES
    )
    rules = json.loads(rows.pop()["rules"])
    return {Lane(*row[:4]): row["id"] for row in rows}, Rules(
        caps=tuple(Cap(*cap) for cap in rules["caps"] or ()),
        rates=tuple(Rate(*rate) for rate in rules["rates"] or ()),
        more=rules["more"],
        blocked=rules["blocked"] or {},
        weights=rules["weights"] or {},
    )
