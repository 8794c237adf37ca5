"""What a pipeline tells the janitor: which of its things have an age, and which stored objects its rows name.

The janitor knows no table of a pipeline. It goes over the rules of all that are installed: it asks a rule for jobs that
have something to remove, asks which of them are due, locks those jobs, asks again, and has the rule remove what is due.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from waybill.config.settings import ProcessSettings

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.janitor.task import Task, TaskTools

S = TypeVar("S", bound=ProcessSettings)

JobIds = Sequence[uuid.UUID]


class SettingsOf(Protocol):
    """Returns the process's settings of a class."""

    def __call__(self, kind: type[S], /) -> S: ...


class IdRange(NamedTuple):
    """A page of jobs in the order of their ids, which is the order of their creation."""

    after: uuid.UUID
    until: uuid.UUID
    limit: int


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """One kind of thing that goes when it is old enough."""

    name: str
    """Its name in `retention_ages`, and the name of the janitor's task. It is unique among all that is installed: start
    it with the pipeline's name."""
    keeps: str
    """What has this age, for people: `documents`."""
    items: str
    """What a plan's items are called, for people: `documents past their time`."""
    default_days: Callable[[SettingsOf], float]
    """The age of a tenant that has none of its own, from the settings."""
    find: Callable[[Connection, IdRange], Awaitable[JobIds]]
    """The jobs of a page that have such a thing, in the order of their ids; cheap, and without regard to their age."""
    due: Callable[[Connection, JobIds, float], Awaitable[JobIds]]
    """Those of the jobs whose thing is past its age, given the default, and that nothing keeps (`job_retention`)."""
    remove: Callable[[Connection, JobIds, float], Awaitable[Mapping[str, int]]]
    """Remove the things of these jobs, which are locked and due, in the caller's transaction; how much that was, by
    figure."""
    task: str | None = None
    """The task that it belongs to, if that is another rule's: both are then reported as one."""


class StoredObject(NamedTuple):
    """A stored object, and the job whose id is in its key."""

    job_id: uuid.UUID
    key: str


class NamedObject(NamedTuple):
    """A stored object that a row names."""

    job_id: uuid.UUID
    key: str
    missing: bool
    """The row says that the object is not there."""


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Which stored objects a pipeline's rows name."""

    owned: Callable[[Connection, JobIds], Awaitable[set[uuid.UUID]]]
    """Those of the jobs that are the pipeline's. When they have ended, what no row names may go; the files of a job
    that is nobody's are left alone."""
    named: Callable[[Connection, Sequence[StoredObject]], Awaitable[set[str]]]
    """Those of the keys that must stay because a row names them."""
    expected: Callable[[Connection, JobIds], Awaitable[Sequence[NamedObject]]]
    """The objects that should be there for these jobs, for the janitor to look whether they are."""
    mark: Callable[[Connection, Sequence[NamedObject]], Awaitable[None]]
    """Note for each object, as far as a row still names it, whether it is missing, and tell whoever follows the job.
    The engine's rows are marked before any pipeline's."""


JobKeeper = Callable[["Connection", JobIds, Sequence[datetime]], Awaitable[set[uuid.UUID]]]
"""Which of the jobs must stay listed: the pipeline still keeps something of them, or was asked for them after the given
times."""


@dataclass(frozen=True, slots=True)
class ServedRows:
    """Small rows that have served: they go without a lock on any job, and no tenant has an age for them."""

    name: str
    """The figure they are reported under."""
    count: Callable[[Connection, float], Awaitable[int]]
    """How many there are to forget, given how many days history is kept."""
    forget: Callable[[Connection, float, int], Awaitable[int]]
    """Forget some of them, at most as many as given; how many that were."""


def served_rows(name: str, *, count: str, forget: str, by_age: bool = False) -> ServedRows:
    """Served rows by two statements: `count` counts all, `forget` deletes up to $1 of them.

    With `by_age`, each takes the days that history is kept as a last parameter.
    """

    async def counted(connection: Connection, days: float) -> int:
        return int(await connection.fetchval(count, *([days] if by_age else [])))

    async def forgotten(connection: Connection, days: float, limit: int) -> int:
        deleted = await connection.execute(forget, limit, *([days] if by_age else []))
        return int(deleted.rpartition(" ")[2])

    return ServedRows(name, counted, forgotten)


@dataclass(frozen=True, slots=True)
class PipelineRetention:
    """All that a pipeline tells the janitor. Leave out what it does not have."""

    rules: Sequence[RetentionRule] = ()
    """In the order in which they are applied."""
    prefixes: Sequence[str] = ()
    """Where its objects lie in storage: the first parts of their keys. The key goes on as `yy/mm/dd/<job id>`."""
    objects: ObjectNames | None = None
    keeps_job: JobKeeper | None = None
    kinds_with_rows: Sequence[str] = ()
    """The kinds of jobs that it has rows of. Such a job is deleted by itself, so that the pipeline's triggers on `jobs`
    and `shelved_jobs` see it; jobs of other kinds may go with all of their day. If a pipeline has `keeps_job` and does
    not say this, every job is deleted by itself."""
    served_rows: Sequence[ServedRows] = ()
    tables: Sequence[str] = ()
    """Its tables with many changes, whose bloat the janitor looks after."""
    tasks_before: Sequence[Callable[[TaskTools], Task]] = ()
    """Further tasks, before anything is removed by rules."""
    tasks_after: Sequence[Callable[[TaskTools], Task]] = ()
    """Further tasks, after that."""
