"""What every task of the janitor is: a plan, which only reads, and a way to do one batch of it in a short transaction.

`--dry-run` goes through the same plans and does nothing. Things may change between plan and doing, so whoever does a
batch looks again, under locks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from waybill.config import load
from waybill.config.settings import ProcessSettings
from waybill.db import Database
from waybill.storage import Storage

S = TypeVar("S", bound=ProcessSettings)

BATCH = 500
"""Rows or objects at a time: tens of milliseconds of locks."""
_LONG = 0.2
"""Seconds, for a transaction."""
_FEWEST = 20

NEXT_LOOK = "next_look_seconds"
"""The figure of a task that did not look, because it has looked at everything not long ago: when it will again."""
RESUMED = "resumed"
"""The figure of a task that looked only at the rest, because an earlier run had looked at the beginning."""


@dataclass(slots=True)
class BatchSize:
    """How many jobs one transaction takes: fewer where the database is slow, so that nobody waits long."""

    jobs: int = BATCH

    def took(self, seconds: float) -> None:
        if seconds > _LONG:
            self.jobs = max(_FEWEST, self.jobs // 2)
        elif seconds < _LONG / 4:
            self.jobs = min(BATCH, self.jobs * 2)


class TaskTools:
    """What tasks work with."""

    def __init__(
        self, database: Database, storage: Storage, *settings: ProcessSettings, compare_all: bool = False
    ) -> None:
        self.database = database
        self.storage = storage
        self.compare_all = compare_all
        """Compare all of the storage with all rows, however recently that was done."""
        self.batch_size = BatchSize()
        self._settings: dict[type[ProcessSettings], ProcessSettings] = {type(each): each for each in settings}

    def settings_of(self, kind: type[S], /) -> S:
        """The settings of a class: as they were given, or from the environment."""
        if kind not in self._settings:
            self._settings[kind] = load(kind)
        return cast("S", self._settings[kind])


@dataclass(frozen=True, slots=True)
class Batch:
    """One page of what a plan looked at."""

    items: Sequence[Any]
    """What is to be done about it; often nothing."""
    found: Mapping[str, float] = field(default_factory=dict)
    """How things stand, as gauges."""
    cursor: str | None = None
    """Where a task that cannot look at everything in one run goes on, once this batch is done."""


@dataclass(slots=True)
class Tally:
    """What one batch came to."""

    done: Counter[str] = field(default_factory=Counter)
    found: dict[str, float] = field(default_factory=dict)
    trouble: str | None = None
    """Something could not be done, and the rest goes on: the task ends as failed."""


class Task(Protocol):
    name: str
    items: str
    """What a plan's items are called, for people: `documents to remove`."""

    def plan(self) -> AsyncIterator[Batch]:
        """Look, a bounded number of rows at a time. A batch for each look, also when there is nothing to do."""

    async def do(self, batch: Batch) -> Tally:
        """Do it, in one short transaction. Done twice, the second time does nothing."""
