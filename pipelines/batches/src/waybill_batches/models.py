"""The batches pipeline's tables, and what its other modules tell each other."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill.db.column_types import Xid8


def _time(*, nullable: bool = False) -> Any:
    """A time. One that cannot be empty begins as that of the row's creation."""
    kind: Any = sa.DateTime(timezone=True)
    if nullable:
        return Field(default=None, sa_type=kind)
    return Field(sa_type=kind, sa_column_kwargs={"server_default": sa.func.now()})


class BatchRow(SQLModel, table=True):
    """What is known of one ZIP. Written by `repository`."""

    __tablename__ = "batches"

    id: uuid.UUID = Field(primary_key=True)
    """That of the first run's `summarize_run` job."""
    tenant: str
    owner: str
    name: str
    source_name: str
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    rules: list[dict[str, str]] = Field(sa_type=JSONB)
    wanted: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """The JSON Schema of the fields that a language model fills; None if it is not asked."""
    fingerprint: str
    """Of the ZIP and of what is wanted of it: equal for requests that mean the same."""
    source_key: str
    source_deleted_at: datetime | None = _time(nullable=True)
    """The ZIP goes as soon as its files are stored."""

    status: str = Field(sa_column_kwargs={"server_default": "queued"})
    run: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    """Rises each time that failed files are retried."""
    run_job: uuid.UUID
    all_runs: list[uuid.UUID] = Field(sa_type=sa.ARRAY(sa.Uuid))
    """Every `summarize_run` job that it ever had, for those who forget it."""
    error: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """Why the ZIP as a whole failed."""
    counts: dict[str, int] | None = Field(default=None, sa_type=JSONB)
    """Of its files, by status, once it has ended."""
    summary: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    created_at: datetime = _time()
    unpacked_at: datetime | None = _time(nullable=True)
    finished_at: datetime | None = _time(nullable=True)
    changed: int = Field(sa_type=Xid8, sa_column_kwargs={"server_default": sa.text("pg_current_xact_id()")})
    changed_at: datetime = _time()

    __table_args__ = (
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'complete', 'complete_with_errors', 'failed', 'cancelled', 'expired')",
            name="batches_status_known",
        ),
        sa.Index("batches_listed", "owner", sa.text("id DESC")),
        sa.Index("batches_changed", "owner", "changed"),
        sa.Index("batches_same", "owner", "fingerprint"),
        sa.Index("batches_run_job", "run_job"),
    )


class BatchFileRow(SQLModel, table=True):
    """A file of a batch. Written by `repository.files`."""

    __tablename__ = "batch_files"

    batch_id: uuid.UUID = Field(primary_key=True, foreign_key="batches.id", ondelete="CASCADE")
    number: int = Field(primary_key=True)
    """Its place in the ZIP."""
    owner: str
    doc_id: str
    """Made of path and content, so it is the same in each batch that has the same file in the same place."""
    path: str
    type: str
    """By content, in the words of `waybill.files.FileType`."""
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    mapping: str | None = None
    twin_of: int | None = None
    """The number of an earlier file of this batch with the same content and mapping, which is worked for both."""

    status: str
    job_id: uuid.UUID | None = None
    """The job that works it, or the last that did."""
    error: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    tries: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """How often it was tried again."""
    milliseconds: float | None = Field(default=None, sa_type=sa.REAL)
    finished_at: datetime | None = _time(nullable=True)
    reused: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """Its result is a copy of an earlier one: nothing had to be worked."""
    amounts: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """The amounts that were read, and their currency, for the totals of the summary."""

    source_key: str | None = None
    source_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    """Where its content begins in the stored object; None if it is the whole object."""
    extractor: str | None = None
    """The version of what made the result: with another one, the same content is worked again. None if there is no
    result that could be used again."""
    result_key: str | None = None
    result_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    result_bytes: int | None = Field(default=None, sa_type=sa.BigInteger)
    xml_key: str | None = None
    xml_bytes: int | None = Field(default=None, sa_type=sa.BigInteger)

    __table_args__ = (
        sa.CheckConstraint(
            "status IN ('queued', 'complete', 'needs_review', 'failed', 'cancelled', 'expired')",
            name="batch_files_status_known",
        ),
        sa.Index("batch_files_by_status", "batch_id", "status", "number"),
        sa.Index("batch_files_by_doc", "batch_id", "doc_id"),
        sa.Index("batch_files_of_job", "job_id", postgresql_where=sa.text("job_id IS NOT NULL")),
        sa.Index("batch_files_twins", "batch_id", "twin_of", postgresql_where=sa.text("twin_of IS NOT NULL")),
        sa.Index("batch_files_same", "owner", "sha256", postgresql_where=sa.text("extractor IS NOT NULL")),
    )


@dataclass(frozen=True, slots=True)
class ReceivedZip:
    """A ZIP that is in storage already."""

    batch_id: uuid.UUID
    key: str
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredSource:
    """Where the content of a file lies: a whole object, or a range of one."""

    key: str
    at: int | None
    bytes: int

    @property
    def range(self) -> tuple[int, int]:
        start = self.at or 0
        return start, start + self.bytes


@dataclass(frozen=True, slots=True)
class WorkFile:
    """A file that a job works."""

    number: int
    path: str
    type: str
    sha256: str
    tries: int
    source: StoredSource


@dataclass(frozen=True, slots=True)
class FileEnd:
    """How the work on a file ended."""

    number: int
    milliseconds: float
    error: dict[str, Any] | None = None
    at: int | None = None
    """Where its result begins in the job's pack; None if there is none."""
    bytes: int | None = None
    reused: bool = False
    extractor: str | None = None
    """What made its result."""
    amounts: str | None = None
    """As JSON: the numbers that the summary adds up."""


@dataclass(frozen=True, slots=True)
class KnownResult:
    """The result of a file with the same content."""

    key: str
    at: int
    bytes: int
    milliseconds: float
    extractor: str
    """What made it."""
    amounts: str | None = None
    """As JSON."""

    def end_of(self, number: int, at: int) -> FileEnd:
        """How a file with that content ends, with a copy of it."""
        return FileEnd(
            number,
            self.milliseconds,
            at=at,
            bytes=self.bytes,
            reused=True,
            extractor=self.extractor,
            amounts=self.amounts,
        )
