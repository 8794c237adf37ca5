"""The tables of the shelf: the columns of `jobs` and `job_events`, in partitions by the day of the job's id.

`ShelvedJob` and `AnyJob` read a shelved job, or any job wherever it lies, as a `Job`.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import SQLModel

from waybill_engine.models import Job, JobEvent


def _columns_of(model: type[SQLModel]) -> list[sa.Column[Any]]:
    table = cast("sa.Table", model.__table__)  # type: ignore[attr-defined]
    return [
        sa.Column(
            column.name,
            column.type,
            primary_key=column.primary_key,
            nullable=column.nullable,
            autoincrement=False,
            server_default=column.server_default if column.identity is None and table.name == "jobs" else None,
        )
        for column in table.columns
    ]


SHELVED_JOBS = sa.Table(
    "shelved_jobs",
    SQLModel.metadata,
    *_columns_of(Job),
    sa.Index(
        "shelved_jobs_ended_badly",
        "state",
        "id",
        postgresql_include=["queue"],
        postgresql_where=sa.text("state <> 'succeeded'"),
    ),
    sa.Index("shelved_jobs_of_tenant", "tenant", "id"),
    sa.Index("shelved_jobs_children", "parent_id", postgresql_where=sa.text("parent_id IS NOT NULL")),
    postgresql_partition_by="RANGE (id)",
)

sa.Table("shelved_job_events", SQLModel.metadata, *_columns_of(JobEvent), postgresql_partition_by="RANGE (job_id)")

JOB_COLUMNS = ", ".join(column.name for column in SHELVED_JOBS.columns)
EVENT_COLUMNS = ", ".join(column.name for column in cast("sa.Table", JobEvent.__table__).columns)  # type: ignore[attr-defined]


def _view(name: str, model: type[SQLModel]) -> Any:
    table = cast("sa.Table", model.__table__)  # type: ignore[attr-defined]
    return aliased(
        model, sa.table(name, *(sa.column(one.name, one.type) for one in table.columns)), adapt_on_names=True
    )


ShelvedJob = aliased(Job, SHELVED_JOBS, adapt_on_names=True)
AnyJob = _view("all_jobs", Job)
AnyJobEvent = _view("all_job_events", JobEvent)
