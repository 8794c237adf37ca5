"""One task for each retention rule, or for several that are reported as one: what is past its age goes.

The plan looks at pages of jobs and asks the rule which of them are due. Doing it takes the jobs' locks, asks again, and
removes: what was pinned, retried or uploaded again meanwhile is seen then.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill.retention import IdRange, RetentionRule, let_holds_wait
from waybill_engine.retention import lock
from waybill_janitor.cutoffs import Cutoffs


@dataclass(frozen=True, slots=True)
class DueJob:
    rule: RetentionRule
    job_id: uuid.UUID


class Retention:
    def __init__(self, tools: TaskTools, rules: Sequence[RetentionRule]) -> None:
        self.name = rules[0].task or rules[0].name
        self.items = rules[0].items
        self._tools = tools
        self._rules = rules

    def _days(self, rule: RetentionRule) -> float:
        return rule.default_days(self._tools.settings_of)

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            cutoffs = await Cutoffs.read(connection)
        for rule in self._rules:
            days = self._days(rule)
            after, until = uuid.UUID(int=0), cutoffs.until(rule.name, days)
            while True:
                async with self._tools.database.hot() as connection:
                    page = await rule.find(connection, IdRange(after, until, BATCH))
                    due = set(await rule.due(connection, page, days)) if page else set()
                if not page:
                    break
                after = page[-1]
                yield Batch([DueJob(rule, job_id) for job_id in page if job_id in due])

    async def do(self, batch: Batch) -> Tally:
        """In as many transactions as it needs for each to be short."""
        tally = Tally()
        size = self._tools.batch_size
        rule: RetentionRule = batch.items[0].rule
        left = [due.job_id for due in batch.items]
        while left:
            jobs, left = left[: size.jobs], left[size.jobs :]
            started = time.monotonic()
            tally.done += await self._remove(rule, jobs)
            size.took(time.monotonic() - started)
        return tally

    async def _remove(self, rule: RetentionRule, job_ids: Sequence[uuid.UUID]) -> Counter[str]:
        days = self._days(rule)
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            locked = await lock(connection, job_ids)
            due = await rule.due(connection, locked, days)
            return Counter(await rule.remove(connection, due, days)) if due else Counter()
