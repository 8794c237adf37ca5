"""The mappings that tenants bring: their tables, and what the modules about them tell each other."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill.errors import BadMapping, Conflict
from waybill.messages import msg
from waybill_convert.revision_models import Json
from waybill_documents.mapping_files import MappingFiles

SHARED = ""
"""The tenant of mappings that an operator shares with all tenants."""


class MappingState(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"
    RETIRED = "retired"


def _time(*, nullable: bool = False) -> Any:
    if nullable:
        return Field(default=None, sa_type=sa.DateTime(timezone=True))
    return Field(sa_type=sa.DateTime(timezone=True), sa_column_kwargs={"server_default": sa.func.now()})


class MappingRow(SQLModel, table=True):
    """One version of a mapping. Once it is published, triggers keep it as it is (migration convert_0006)."""

    __tablename__ = "mappings"

    tenant: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    state: str = Field(default="draft", sa_column_kwargs={"server_default": "draft"})
    title: str
    document: str
    schemas: dict[str, str] = Field(sa_type=JSONB, sa_column_kwargs={"server_default": sa.text("'{}'::jsonb")})
    sha256: str
    bytes: int
    author: str
    embedded: bool | None = None
    created_at: datetime = _time()
    changed_at: datetime = _time()
    published_at: datetime | None = _time(nullable=True)
    retired_at: datetime | None = _time(nullable=True)

    __table_args__ = (
        sa.CheckConstraint("state IN ('draft', 'published', 'retired')", name="mappings_state_known"),
        sa.Index("mappings_by_name", "name"),
    )


class MappingSampleRow(SQLModel, table=True):
    """A document that a mapping is tested with, and the data that must be read from it."""

    __tablename__ = "mapping_samples"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str
    mapping: str
    name: str
    storage_key: str
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    expected: Json | None = Field(default=None, sa_type=JSONB)
    created_at: datetime = _time()

    __table_args__ = (sa.Index("mapping_samples_named", "tenant", "mapping", "name", unique=True),)


@dataclass(frozen=True, slots=True)
class TenantMapping:
    """A mapping without its text, as lists show it."""

    tenant: str
    name: str
    state: MappingState
    title: str
    sha256: str
    bytes: int
    author: str
    embedded: bool | None
    """Whether it reads e-invoices, and not what is printed on pages. None if it is older than this column."""
    samples: int
    created_at: datetime
    changed_at: datetime
    published_at: datetime | None
    retired_at: datetime | None


@dataclass(frozen=True, slots=True)
class MappingSample:
    """A sample without its document."""

    id: uuid.UUID
    name: str
    storage_key: str
    bytes: int
    sha256: str
    expected: Json | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WholeMapping:
    """A mapping with its text and its samples."""

    mapping: TenantMapping
    files: MappingFiles
    samples: list[MappingSample]


@dataclass(frozen=True, slots=True)
class SampleResult:
    """How a sample came out: `findings` if it could not be converted, `differences` from what was expected."""

    sample: MappingSample
    findings: list[Json]
    differences: list[Json]

    @property
    def passed(self) -> bool:
        return not self.findings and not self.differences


class InvalidMapping(BadMapping):
    """A mapping that the language does not allow, with all that is wrong with it."""

    faults: Sequence[Json] = ()

    @classmethod
    def of(cls, faults: Sequence[Json]) -> InvalidMapping:
        invalid = cls(msg("convert.mapping.invalid", why=str(faults[0]["message"])[:300]))
        invalid.faults = faults
        return invalid


class SamplesFail(Conflict):
    """A mapping that cannot be published yet."""

    results: Sequence[SampleResult] = ()

    @classmethod
    def of(cls, results: Sequence[SampleResult]) -> SamplesFail:
        failed = [result.sample.name for result in results if not result.passed]
        refusal = cls(msg("convert.mapping.samples_fail", count=len(failed), first=failed[0]))
        refusal.results = results
        return refusal
