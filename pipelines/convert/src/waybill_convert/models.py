"""The convert pipeline's tables, and what its other modules tell each other."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill.db.column_types import Xid8


def _time(*, nullable: bool = False, now: bool = False) -> Any:
    """A time. What cannot be empty begins as the time of the row's creation, and so does what says `now`."""
    kind: Any = sa.DateTime(timezone=True)
    default = {"server_default": sa.func.now()} if now or not nullable else {}
    if nullable:
        return Field(default=None, sa_type=kind, sa_column_kwargs=default)
    return Field(sa_type=kind, sa_column_kwargs=default)


LOSSES = ("strict", "lenient")
"""What may be lost of an e-invoice that is written in another syntax: nothing, or what has no place there."""

_KEPT = sa.text("deleted_at IS NULL")


class Conversion(SQLModel, table=True):
    """What is known of one document. Written by `repository` and by triggers on `jobs` (the migrations have them)."""

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
    upload_borrowed: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """The document belongs to whoever enqueued the job. `upload_deleted_at` then says when convert let go of it."""

    status: str = Field(sa_column_kwargs={"server_default": "queued"})
    listed_at: datetime | None = _time(nullable=True, now=True)
    """Its place in its owner's list: when it was uploaded, or last uploaded again. None if it is in no list, because it
    belongs to another job's family; it is then found by its id only."""
    reused_at: datetime | None = _time(nullable=True)
    downloaded_at: datetime | None = _time(nullable=True)
    deleted_at: datetime | None = _time(nullable=True)
    """Its job is gone. The row stays so that followers of the list hear of it, and then goes too."""
    changed: int | None = Field(
        default=None, sa_type=Xid8, sa_column_kwargs={"server_default": sa.text("pg_current_xact_id()")}
    )
    """The transaction that changed it last: what `since` compares. None if it is in no list."""
    changed_at: datetime = _time()
    mapping_sha256: str | None = None
    """The version of the mapping that was named; for `auto`, the hash of the catalogue to choose from. None if the job
    is older than this column."""
    converted_by: str | None = None
    """The release that read the document. None if it was read before there was this column."""
    used_mapping: str | None = None
    """The mapping that the document chose, if `auto` was asked for; None until then."""
    used_sha256: str | None = None
    recognition: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """Why it was chosen: its title and score, and the runner-up."""
    revision: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The latest that a person made (see `revision_models`); 0 is what was read."""
    doubts: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """Why a person has to look first (`doubts.Doubts.brief`); None if nobody has to."""
    approved_at: datetime | None = _time(nullable=True)
    approved_by: str | None = None
    """Who looked and said that it is right, by approving it or by saving a correction: as `RevisionRow.author`."""
    loss: str | None = None
    """What may be lost of an e-invoice, `strict` or `lenient`; None if the mapping decides."""

    __table_args__ = (
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'complete', 'needs_review', 'expired', 'failed', 'cancelled')",
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
        sa.Index(
            "conversions_borrowed",
            "upload_key",
            postgresql_where=sa.text("upload_borrowed AND upload_deleted_at IS NULL"),
        ),
        sa.Index("conversions_version", sa.text("COALESCE(used_sha256, mapping_sha256, mapping)")),
        sa.Index("conversions_catalogue", "mapping_sha256", postgresql_where=sa.text("mapping = 'auto'")),
        sa.Index("conversions_gone", "job_id", postgresql_where=sa.text("deleted_at IS NOT NULL")),
    )


class ReviewThreshold(SQLModel, table=True):
    """Below which confidence a tenant's results need a look. Written by `repository.thresholds`."""

    __tablename__ = "review_thresholds"

    tenant: str = Field(primary_key=True)
    mapping: str = Field(primary_key=True)
    """Empty for all mappings that have no row of their own."""
    below: int = Field(sa_type=sa.SmallInteger)

    __table_args__ = (sa.CheckConstraint("below >= 0 AND below <= 100", name="review_thresholds_percent"),)


class StoredCatalogue(SQLModel, table=True):
    """The mappings that some jobs may choose from: name, hash and origin of each."""

    __tablename__ = "mapping_catalogues"

    sha256: str = Field(primary_key=True)
    entries: list[list[str]] = Field(sa_type=JSONB)
    used_at: datetime = _time()


class Duration(SQLModel, table=True):
    """How long jobs of a kind took, by the size of their document: `size` is the logarithm of its bytes to base 2."""

    __tablename__ = "durations"

    kind: str = Field(primary_key=True)
    size: int = Field(sa_type=sa.SmallInteger, primary_key=True)
    samples: int
    low: float = Field(sa_type=sa.REAL)
    median: float = Field(sa_type=sa.REAL)
    high: float = Field(sa_type=sa.REAL)
    """Seconds: the quartiles."""
    updated_at: datetime = Field(sa_type=sa.DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF that is in storage already, and what is wanted of it."""

    job_id: uuid.UUID
    key: str
    original_name: str
    bytes: int
    sha256: str
    mapping: str
    mapping_sha256: str | None = None
    """The version of the mapping; None if it is to be found by its name."""
    loss: str | None = None
    """As in `Conversion`."""
