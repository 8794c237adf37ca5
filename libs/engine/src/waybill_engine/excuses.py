"""Whether a run that a dependency let down costs its job an attempt.

It costs nothing while the dependency's breaker is not closed, while the dependency has asked us to wait, if the
dependency could not even be reached, and if nothing shows that the job itself is to blame. What shows it is a success:
if the dependency did well by some other job since this job failed last, and fails it again, the job pays. So an outage
costs nobody anything, however few jobs there are, and a document that the dependency chokes on still ends.

No excuse lasts for ever: a job that has been put off for longer than the policy's patience pays for each further run.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import Code
from waybill.failures import Failure
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.retry import RetryPolicy

if TYPE_CHECKING:
    from waybill.db.database import Connection

# A person's retry begins a new story. Outages of our own database are excused elsewhere and do not count here.
_LOOK = f"""
SELECT blocked.seconds AS blocked_for, past.waits,
       COALESCE(extract(epoch FROM now() - past.waits_since), 0)::float8 AS waited,
       past.failed_at IS NOT NULL
       AND EXISTS (SELECT FROM breaker_counts WHERE name = $2 AND succeeded_at > past.failed_at) AS works_for_others
  FROM (SELECT count(*) FILTER (WHERE event = 'postponed')::int AS waits,
               min(at) FILTER (WHERE event = 'postponed') AS waits_since,
               max(at) AS failed_at
          FROM job_events
         WHERE job_id = $1 AND event IN ('postponed', 'retry_scheduled')
           AND detail->>'code' <> '{Code.DB_UNAVAILABLE}'
           AND id > COALESCE((SELECT max(id) FROM job_events WHERE job_id = $1 AND event = 'retried'), 0)) AS past
  LEFT JOIN (SELECT extract(epoch FROM greatest(open_until, cooldown_until, now()) - now())::float8 AS seconds
               FROM breakers
              WHERE name = $2 AND (state <> 'closed' OR cooldown_until > now())) AS blocked ON true
"""  # noqa: S608 - made of constants

_SPREAD = 0.1
"""The share of a wait that is added at random, so that those who were sent away together do not return together."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """The run costs nothing: its job comes back after `wait` seconds, and then after a delay of its own."""

    wait: float = 0.0
    backoff: int | None = None
    """Which delay of its retry policy the job adds; None if the dependency itself said when to come back."""
    longest: float = 300.0
    """The longest delay it adds."""

    def delay(self, policy: RetryPolicy, rng: random.Random | None = None) -> float:
        if self.backoff is None:
            return self.wait + max(1.0, _SPREAD * self.wait) * (rng or _rng).random()
        return self.wait + min(policy.delay(self.backoff, rng), self.longest)


_rng = random.Random()  # noqa: S311 - spreads load, guards nothing


async def find_excuse(
    connection: Connection,
    job_id: uuid.UUID,
    attempts: int,
    failure: Failure,
    dependency: str | None,
    policy: BreakerPolicy,
) -> Excuse | None:
    """The excuse of a run that ended in `failure`, for which `dependency` is to blame; None if the job has to pay.

    Call it in the transaction that ends the run, after the breaker was told.
    """
    row = await connection.fetchrow(_LOOK, job_id, dependency)
    assert row is not None, "an aggregate always answers"  # noqa: S101
    if row["waited"] >= policy.patience:
        return None
    # A breaker that was tripped for a day may be reset in a minute, and a scheduled job does not hear of that.
    blocked_for = None if row["blocked_for"] is None else min(row["blocked_for"], policy.open_at_most)
    if failure.retry_after is not None:
        asked = min(max(failure.retry_after, 1.0), 3600.0)
        return Excuse(max(asked, blocked_for or 0.0))
    if blocked_for is not None:
        # It comes back after the others: a job that the dependency chokes on must not be the probe every time.
        return Excuse(blocked_for, backoff=attempts, longest=policy.open_at_most)
    if failure.away or not row["works_for_others"]:
        return Excuse(backoff=row["waits"], longest=policy.open_at_most)
    return None
