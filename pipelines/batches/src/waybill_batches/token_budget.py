"""How many tokens a tenant may use in a minute, counted in Postgres across all workers.

What a question probably takes is taken before it is asked, and corrected afterwards. A job whose tenant has used up its
tokens goes back to wait, which costs it no attempt and other tenants nothing. Many that wait come back one after the
other, at the pace at which there are tokens for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill import rate_limits
from waybill.db import driver
from waybill_engine import Snooze

if TYPE_CHECKING:
    from waybill_engine import JobContext

_MINUTE = 60.0
_LONGEST_WAIT = 300.0
"""Seconds after which a job looks again, however many wait before it: they may have been cancelled."""


class TokenBudget:
    """The tokens of one job. With a limit of 0 there is nothing to count."""

    def __init__(self, job: JobContext, limit: int) -> None:
        self._job = job
        self._limit = limit
        self._taken = 0
        self._subject = f"llm tokens {job.tenant}"

    async def take(self, tokens: int) -> None:
        """Take so many tokens. Raises Snooze if it is not this job's turn yet."""
        if not self._limit:
            return
        async with self._job.transaction() as session:
            connection = await driver(session)
            wait = await rate_limits.take(connection, self._subject, limit=self._limit, per=_MINUTE, cost=tokens)
            if wait is not None:
                line = f"{self._subject} waiting"
                turn = await rate_limits.queue_up(
                    connection, line, limit=self._limit, per=_MINUTE, cost=tokens, at_most=_LONGEST_WAIT
                )
                wait = min(max(wait, turn), _LONGEST_WAIT)
        if wait is not None:
            raise Snooze(wait, f"the tenant's {self._limit} tokens per minute are used up")
        self._taken = tokens

    async def correct(self, used: int) -> None:
        """Give back what was not used, or take what was used beyond."""
        if not self._limit or used == self._taken:
            return
        async with self._job.transaction() as session:
            await rate_limits.correct(
                await driver(session), self._subject, limit=self._limit, per=_MINUTE, by=used - self._taken
            )
