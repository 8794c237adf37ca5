"""The convert pipeline's table, and what its other modules tell each other."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from waybill_convert.status import Status


class Xid8(sa.types.UserDefinedType[int]):
    """Postgres's 64-bit transaction id, which never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


def _time(*, nullable: bool = False) -> Any:
    kind: Any = sa.DateTime(timezone=True)
    if nullable:
        return Field(default=None, sa_type=kind)
    return Field(sa_type=kind, sa_column_kwargs={"server_default": sa.func.now()})


_KEPT = sa.text("deleted_at IS NULL")


class Conversion(SQLModel, table=True):
    """What is known of one document. Written by `repository` and by the triggers of migration 0006."""

    __tablename__ = "conversions"

    job_id: uuid.UUID = Field(primary_key=True)
    tenant: str
    owner: str
    original_name: str
    """As its owner called it, made presentable."""
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    mapping: str
    pages: int | None = None
    upload_key: str
    upload_deleted_at: datetime | None = _time(nullable=True)
    upload_missing_at: datetime | None = _time(nullable=True)
    """The janitor looked for the document then, and it was not there."""

    status: str = Field(sa_column_kwargs={"server_default": "queued"})
    listed_at: datetime = _time()
    """Its place in the list: when it was uploaded, or last uploaded again."""
    reused_at: datetime | None = _time(nullable=True)
    downloaded_at: datetime | None = _time(nullable=True)
    deleted_at: datetime | None = _time(nullable=True)
    """Its job is gone. The row stays so that followers of the list hear of it, and then goes too."""
    changed: int = Field(sa_type=Xid8, sa_column_kwargs={"server_default": sa.text("pg_current_xact_id()")})
    """The transaction that changed it last: what `since` compares."""
    changed_at: datetime = _time()
    revision: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The latest that a person made (see `revision_models`); 0 is what was read."""

    __table_args__ = (
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'complete', 'expired', 'failed', 'cancelled')",
            name="conversions_status_known",
        ),
        sa.Index(
            "conversions_listed", "owner", sa.text("listed_at DESC"), sa.text("job_id DESC"), postgresql_where=_KEPT
        ),
        sa.Index(
            "conversions_by_status",
            "owner",
            "status",
            sa.text("listed_at DESC"),
            sa.text("job_id DESC"),
            postgresql_where=_KEPT,
        ),
        sa.Index("conversions_changed", "owner", "changed", "job_id"),
        sa.Index("conversions_same", "owner", "sha256", "mapping", "bytes", postgresql_where=_KEPT),
        sa.Index("conversions_sources", "job_id", postgresql_where=sa.text("upload_deleted_at IS NULL")),
        sa.Index(
            "conversions_downloaded",
            "job_id",
            postgresql_where=sa.text("downloaded_at IS NOT NULL AND status = 'complete'"),
        ),
        sa.Index("conversions_gone", "job_id", postgresql_where=sa.text("deleted_at IS NOT NULL")),
    )


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that is in storage already, and what is wanted of it."""

    job_id: uuid.UUID
    key: str
    original_name: str
    bytes: int
    sha256: str
    mapping: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The converter is having an issue: conversions wait, and lose nothing by it."""

    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Fault:
    code: str
    message: str
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConversionView:
    """One conversion as its owner sees it: the pages and the API are made from this."""

    id: uuid.UUID
    status: Status
    dead_letter: bool
    original_name: str
    bytes: int
    mapping: str
    created_at: datetime
    listed_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    progress: float | None
    progress_message: str | None
    retry_at: datetime | None
    remaining_seconds: int | None
    reused: bool
    stopping: bool
    on_hold: Hold | None
    error: Fault | None
    source_kept: bool
    """Whether it could be tried again: the document is still there."""
    revision: int = 0
    """How many times it was corrected: the number of what is downloaded."""
    pinned: bool = False
    """Its owner wants it kept, whatever its age."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    job: ConversionView
    deduped_from: uuid.UUID | None = None
    """The job that was there already; None for a new one."""


@dataclass(frozen=True, slots=True)
class Listing:
    jobs: list[ConversionView]
    next: str | None
    """Where the list goes on, or None at its end."""
    since: str
    """What changes after this look is asked for with it."""
    counts: dict[Status, int]
    on_hold: Hold | None
    deleted: list[uuid.UUID] = field(default_factory=list)
    """For `since`: what is gone."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def active_count(self) -> int:
        return self.counts[Status.QUEUED] + self.counts[Status.PROCESSING]
