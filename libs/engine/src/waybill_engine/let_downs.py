"""The end of a run that a dependency let down, or asked to come back later.

One transaction tells the breaker, finds out whether the job has an excuse, and writes the end. The fence comes first,
so that a run that lost its job neither opens a breaker nor keeps the fleet away from a dependency.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from waybill.failures import Failure
from waybill_engine.breaker import BreakerPolicy, probe_result
from waybill_engine.claim import ClaimedJob
from waybill_engine.cooldowns import cool_down, seconds_to_cool
from waybill_engine.excuses import find_excuse
from waybill_engine.finish import judge, settle
from waybill_engine.lease import fence
from waybill_engine.models import State
from waybill_engine.retry import RetryPolicy

if TYPE_CHECKING:
    from waybill.db.database import Connection


async def settle_let_down(
    connection: Connection,
    claimed: ClaimedJob,
    failure: Failure,
    dependency: str | None,
    retry: RetryPolicy,
    policy: BreakerPolicy,
    rng: random.Random | None = None,
) -> State | None:
    """Write the end, and return the job's state now. Raises LeaseLost if the job is no longer this run's.

    `dependency` is to blame; None if a kind without dependencies was asked to come back later.
    """
    async with connection.transaction():
        await fence(connection, claimed.worker_id, claimed.id, claimed.token)
        if dependency is not None:
            await _tell_breaker(connection, claimed, failure, dependency, policy)
        excuse = await find_excuse(connection, claimed.id, claimed.attempts, failure, dependency, policy)
        if excuse is None:
            failure = replace(failure, charged=True)
        outcome = judge(claimed, failure, retry, rng, excuse=excuse)
        ended = await settle(connection, claimed.worker_id, [(claimed.id, claimed.token, outcome)])
        return ended.get(claimed.id)


async def _tell_breaker(
    connection: Connection, claimed: ClaimedJob, failure: Failure, dependency: str, policy: BreakerPolicy
) -> None:
    asked = None if failure.retry_after is None else seconds_to_cool(failure.retry_after, policy)
    since = (claimed.probes or {}).get(dependency)
    state = None
    if since is not None:
        reason = f"A probe failed: {failure.code} {failure.message}"
        state = await probe_result(
            connection, dependency, ok=False, since=since, policy=policy, reason=reason, asked=asked
        )
    if state is None and asked is not None:
        await cool_down(connection, dependency, asked, policy)
