"""Lanes: where jobs wait.

A lane is what one claim can take oldest first: the queued jobs of one queue, kind, priority, tenant and owner. Only
lanes that have jobs exist, and they exist only in the index `jobs_owner_order`. Finding them means hopping through that
index from the head of one lane to the head of the next, so it costs by the lane and not by the job.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from waybill_engine.rules import (
    BREAKER_LIMITS,
    WORKER_MAY_CLAIM,
    Cap,
    Peer,
    Rate,
    Rules,
    caps_among,
    queue_is_paused,
    rates_among,
)

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_LANES = 1_000
"""The most lanes one look finds. The next look goes on behind them, so that the cost of a look does not grow with the
number of tenants, and none is overlooked."""


class Lane(NamedTuple):
    queue: str
    kind: str
    priority: int
    tenant: str
    owner: str
    """Below the tenant, so that the browsers that share one tenant take turns in its share."""


class Position(NamedTuple):
    """A place in a lane. The database's clock decides the order. Ids, which carry the enqueuer's clock, break ties."""

    created_at: datetime
    id: uuid.UUID = uuid.UUID(int=0)


BEGINNING = Position(datetime.min.replace(tzinfo=UTC))
"""Before every job of any lane."""


# One statement finds both lanes and rules, so that an idle worker costs next to nothing. The last row has the rules.
#
# From one head, the next is the next owner or tenant of the same priority or the first of the next lower priority.
# `UNION ALL` tries the second only when the first finds nothing. Where an earlier look ended ($5 to $7), this one
# goes on in the same way. The first heads of all queues and kinds come first, so that each gets on.
_FIND_LANES = f"""
WITH RECURSIVE served AS MATERIALIZED (
    SELECT queue, kind, seen.priority, seen.tenant, seen.owner
      FROM unnest($1::text[], $2::text[], $5::smallint[], $6::text[], $7::text[])
               AS seen (queue, kind, priority, tenant, owner)
     WHERE NOT {queue_is_paused("queue")}
), lane AS (
    SELECT served.queue, served.kind, head.priority, head.tenant, head.owner, head.created_at, head.id
      FROM served, LATERAL (
               (SELECT priority, tenant, owner, created_at, id FROM jobs
                 WHERE queue = served.queue AND kind = served.kind AND isolate = $3 AND state = 'queued'
                   AND served.tenant IS NULL
                 ORDER BY priority DESC, tenant, owner, created_at, id
                 LIMIT 1)
               UNION ALL
               (SELECT priority, tenant, owner, created_at, id FROM jobs
                 WHERE queue = served.queue AND kind = served.kind AND isolate = $3 AND priority = served.priority
                   AND (tenant, owner) > (served.tenant, served.owner) AND state = 'queued'
                 ORDER BY tenant, owner, created_at, id
                 LIMIT 1)
               UNION ALL
               (SELECT priority, tenant, owner, created_at, id FROM jobs
                 WHERE queue = served.queue AND kind = served.kind AND isolate = $3 AND priority < served.priority
                   AND state = 'queued'
                 ORDER BY priority DESC, tenant, owner, created_at, id
                 LIMIT 1)
               LIMIT 1
           ) AS head
    UNION ALL
    SELECT lane.queue, lane.kind, next.priority, next.tenant, next.owner, next.created_at, next.id
      FROM lane, LATERAL (
               (SELECT priority, tenant, owner, created_at, id FROM jobs
                 WHERE queue = lane.queue AND kind = lane.kind AND isolate = $3 AND priority = lane.priority
                   AND (tenant, owner) > (lane.tenant, lane.owner) AND state = 'queued'
                 ORDER BY tenant, owner, created_at, id
                 LIMIT 1)
               UNION ALL
               (SELECT priority, tenant, owner, created_at, id FROM jobs
                 WHERE queue = lane.queue AND kind = lane.kind AND isolate = $3 AND priority < lane.priority
                   AND state = 'queued'
                 ORDER BY priority DESC, tenant, owner, created_at, id
                 LIMIT 1)
               LIMIT 1
           ) AS next
), found AS MATERIALIZED (
    SELECT queue, kind, priority, tenant, owner, created_at, id FROM lane LIMIT $4
), limiting AS MATERIALIZED (
    SELECT id, tenant, kind, most FROM {caps_among("found")} AS one
), pacing AS MATERIALIZED (
    SELECT id, tenant, kind, most, seconds, burst FROM {rates_among("found")} AS one
)
SELECT queue, kind, priority, tenant, owner, created_at, id, NULL::json AS rules FROM found
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, json_build_object(
           'caps', (SELECT json_agg(json_build_array(id, tenant, kind, most) ORDER BY id) FROM limiting),
           'rates', (SELECT json_agg(json_build_array(id, tenant, kind, most, seconds, burst) ORDER BY id) FROM pacing),
           'more', EXISTS (SELECT FROM caps WHERE id NOT IN (SELECT id FROM limiting))
                   OR EXISTS (SELECT FROM rates WHERE most IS NOT NULL AND id NOT IN (SELECT id FROM pacing)),
           'limited', (SELECT json_object_agg(name, concat_ws(' ', since, cooldown_until)) FROM breakers
                        WHERE {BREAKER_LIMITS}),
           'weights', (SELECT json_object_agg(name, weight) FROM tenants WHERE weight <> 1),
           'fleet', (SELECT json_agg(json_build_array(id, queues, kinds) ORDER BY id) FROM workers
                      WHERE hears AND NOT isolating AND {WORKER_MAY_CLAIM}))
"""  # noqa: S608 - made of constants


_Limited = tuple[type, str | None, str | None]
"""Cap or rate, of which tenant and kind."""


class LaneScan:
    """Goes over all lanes again and again, a bounded part at a time."""

    def __init__(self, queues: Sequence[str], kinds: Sequence[str], *, isolated: bool = False) -> None:
        self._served = [(queue, kind) for queue in dict.fromkeys(queues) for kind in dict.fromkeys(kinds)]
        self._isolated = isolated
        self._left: dict[tuple[str, str], tuple[int | None, str | None, str | None]] = {}
        """The queues and kinds that are not done yet, with the last priority, tenant and owner seen there."""
        self.complete = True
        """Whether the last look has seen all lanes there are."""
        self._limits: dict[_Limited, Cap | Rate] = {}
        """The caps and rates of the lanes found since the beginning."""
        self._earlier: dict[_Limited, Cap | Rate] = {}
        """Those that were known at the beginning."""
        self.restart()

    @property
    def begins_anew(self) -> bool:
        """Whether the next look begins at the beginning, because the last one came to the end."""
        return self._fresh

    def restart(self) -> None:
        """Have the next look begin at the beginning."""
        self._left = dict.fromkeys(self._served, (None, None, None))
        self._fresh = True
        self._earlier, self._limits = self._earlier | self._limits, {}

    async def look(self, connection: Connection, most: int = MOST_LANES) -> tuple[dict[Lane, Position], Rules]:
        """The next lanes that have jobs, with the positions of their heads, and the rules. Paused queues have none."""
        most = max(most, len(self._left) + 1)
        rows = await connection.fetch(
            _FIND_LANES,
            [queue for queue, _ in self._left],
            [kind for _, kind in self._left],
            self._isolated,
            most,
            [priority for priority, _, _ in self._left.values()],
            [tenant for _, tenant, _ in self._left.values()],
            [owner for _, _, owner in self._left.values()],
        )
        rules = json.loads(rows.pop()["rules"])
        lanes = {Lane(*row[:5]): Position(*row[5:7]) for row in rows}
        ended = len(rows) < most
        self.complete = self._fresh and ended
        self._limits |= _by_whom(Cap(*cap) for cap in rules["caps"] or ())
        self._limits |= _by_whom(Rate(*rate) for rate in rules["rates"] or ())
        # Lanes that this look did not come to still have their caps and rates. At the end it has come to all of them.
        known = sorted((self._limits if ended else self._earlier | self._limits).values(), key=attrgetter("id"))
        if ended:
            self._earlier = {}
            self.restart()
        else:
            # A queue and kind of which this look found nothing has no more lanes.
            self._left = {(lane.queue, lane.kind): (lane.priority, lane.tenant, lane.owner) for lane in lanes}
            self._fresh = False
        return lanes, Rules(
            caps=tuple(one for one in known if isinstance(one, Cap)),
            rates=tuple(one for one in known if isinstance(one, Rate)),
            more=rules["more"],
            limited=rules["limited"] or {},
            weights=rules["weights"] or {},
            fleet=tuple(Peer(*peer) for peer in rules["fleet"] or ()),
        )


def _by_whom(limits: Iterable[Cap | Rate]) -> dict[_Limited, Cap | Rate]:
    return {(type(one), one.tenant, one.kind): one for one in limits}
