"""Lists of jobs, the newest first, in time that does not grow with the number of jobs.

A list is put together from arms: each reads as many jobs as are asked for, in the order of their ids, through an index
that has the filter in it, from the hot table or the shelf. An arm over a column of two (`state`, `id`) compares and
orders by both, so that only that index can serve it, whatever the planner believes about the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill_engine.models import FINAL, Job, State, Worker
from waybill_engine.shelf_models import SHELVED_JOBS

_HOT = cast("sa.Table", Job.__table__)  # type: ignore[attr-defined]

_FEW = 5000
"""So many waiting jobs are sorted. Where there are more, the newest jobs of the table are most likely among them."""

_NEVER_SHELVED = frozenset(State) - FINAL | {State.DEAD_LETTER}

Arm = sa.Select[Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs a list has: those that match all that is given."""

    states: Sequence[State] = ()
    kind: str | None = None
    queue: str | None = None
    tenant: str | None = None
    parent_id: uuid.UUID | None = None
    before: uuid.UUID | None = None
    limit: int = 50


async def newest(session: AsyncSession, wanted: Wanted) -> Sequence[Job]:
    # One statement, so that a job on its way to the shelf or back is seen exactly once.
    many = [state for state in wanted.states if await _are_many(session, state)]
    arms = [*_hot_arms(wanted, many), *_shelf_arms(wanted)]
    together = sa.union_all(*arms).subquery()
    job = aliased(Job, together, adapt_on_names=True)
    query = select(job).order_by(together.c.id.desc()).limit(wanted.limit)
    return (await session.exec(query)).all()


async def _are_many(session: AsyncSession, state: State) -> bool:
    if state not in (State.QUEUED, State.SCHEDULED):
        return False
    waiting = _waiting(state).limit(_FEW + 1).subquery()
    return (await session.exec(select(sa.func.count()).select_from(waiting))).one() > _FEW


def _hot_arms(wanted: Wanted, many: Sequence[State]) -> Iterator[Arm]:
    if wanted.parent_id is not None:
        arm = _arm(_HOT, wanted).where(_HOT.c.parent_id == wanted.parent_id)
        yield (arm.where(_HOT.c.state.in_(wanted.states)) if wanted.states else arm).order_by(_HOT.c.id.desc())
    elif wanted.states:
        for state in dict.fromkeys(wanted.states):
            yield _hot_arm_of(state, wanted, many=state in many)
    elif wanted.tenant is not None:
        yield _of_tenant(wanted, wanted.tenant)
        yield _among(wanted, _running())
    else:
        yield _walk(_HOT, wanted)


def _hot_arm_of(state: State, wanted: Wanted, *, many: bool) -> Arm:
    if state is State.RUNNING:
        return _among(wanted, _running())
    if state in (State.FAILED, State.CANCELLED):
        return (
            _arm(_HOT, wanted)
            .where(_HOT.c.state.in_([sa.literal_column("'failed'"), sa.literal_column("'cancelled'")]))
            .where(*_rows_of(_HOT.c.state, state.value, wanted.before))
            .order_by(_HOT.c.state.desc(), _HOT.c.id.desc())
        )
    if state is State.DEAD_LETTER:
        return _arm(_HOT, wanted).where(_is(state)).order_by(_HOT.c.id.desc())
    if wanted.tenant is not None:
        return _of_tenant(wanted, wanted.tenant).where(_is(state))
    if state in (State.QUEUED, State.SCHEDULED) and not many:
        return _among(wanted, _waiting(state)).where(_is(state))
    return _walk(_HOT, wanted, state)


def _shelf_arms(wanted: Wanted) -> Iterator[Arm]:
    table = SHELVED_JOBS
    by_index = _arm(table, wanted).order_by(table.c.id.desc())
    if wanted.parent_id is not None:
        by_index = by_index.where(table.c.parent_id == wanted.parent_id)
    indexed = wanted.parent_id is not None or wanted.tenant is not None
    if not wanted.states:
        yield by_index if indexed else _walk(table, wanted)
    for state in dict.fromkeys(wanted.states):
        if state is State.SUCCEEDED and not indexed:
            yield _walk(table, wanted, state)
        elif state not in _NEVER_SHELVED:
            yield by_index.where(table.c.state == sa.literal_column(f"'{state.value}'"))


def _walk(table: sa.Table, wanted: Wanted, state: State | None = None) -> Arm:
    """From the newest job back, for what is common. OFFSET keeps the filter out of it, so that a planner who believes
    that nothing matches does not sort the whole table."""
    newest_first = sa.select(table).order_by(table.c.id.desc()).offset(sa.literal_column("0"))
    if wanted.before is not None:
        newest_first = newest_first.where(table.c.id < wanted.before)
    walked = newest_first.subquery()
    arm = _arm(walked, wanted)
    return arm.where(walked.c.state == state.value) if state is not None else arm


def _arm(table: sa.FromClause, wanted: Wanted) -> Arm:
    arm = sa.select(table).limit(wanted.limit)
    for column, value in ((table.c.kind, wanted.kind), (table.c.queue, wanted.queue), (table.c.tenant, wanted.tenant)):
        if value is not None:
            arm = arm.where(column == value)
    return arm.where(table.c.id < wanted.before) if wanted.before is not None else arm


def _of_tenant(wanted: Wanted, tenant: str) -> Arm:
    """Jobs that do not run; those that do are in no index by tenant."""
    return (
        _arm(_HOT, wanted)
        .where(_HOT.c.lease_owner.is_(None), *_rows_of(_HOT.c.tenant, tenant, wanted.before))
        .order_by(_HOT.c.tenant.desc(), _HOT.c.id.desc())
    )


def _rows_of(column: sa.Column[Any], value: str, before: uuid.UUID | None) -> list[sa.ColumnElement[bool]]:
    pair = sa.tuple_(column, _HOT.c.id)
    first, end = uuid.UUID(int=0), before or uuid.UUID(int=2**128 - 1)
    return [pair >= sa.tuple_(value, first), pair < sa.tuple_(value, end)]


def _among(wanted: Wanted, ids: Arm) -> Arm:
    """Of few jobs, those that are wanted. They are found first and sorted afterwards."""
    found = sa.func.array(ids.scalar_subquery())
    return _arm(_HOT, wanted).where(_HOT.c.id == sa.func.any(found)).order_by(_HOT.c.id.desc())


def _running() -> Arm:
    """Worker by worker, because nobody knows how many jobs have an owner."""
    workers = cast("sa.Table", Worker.__table__)  # type: ignore[attr-defined]
    held = sa.select(_HOT.c.id).where(_HOT.c.lease_owner == workers.c.id).offset(sa.literal_column("0"))
    theirs = held.lateral("theirs")
    return sa.select(theirs.c.id).select_from(workers.join(theirs, sa.true()))


def _waiting(state: State) -> Arm:
    """In the order of the index that has only these, so that no other way is worth it."""
    order: dict[State, tuple[Any, ...]] = {
        State.QUEUED: (
            *(_HOT.c.queue, _HOT.c.kind, _HOT.c.isolate, _HOT.c.priority.desc(), _HOT.c.tenant),
            *(_HOT.c.owner, _HOT.c.created_at, _HOT.c.id),
        ),
        State.SCHEDULED: (_HOT.c.run_at,),
    }
    return sa.select(_HOT.c.id).where(_is(state)).order_by(*order[state])


def _is(state: State) -> sa.ColumnElement[bool]:
    """Written out, because a partial index is of use only where its condition is seen."""
    return _HOT.c.state == sa.literal_column(f"'{state.value}'")
