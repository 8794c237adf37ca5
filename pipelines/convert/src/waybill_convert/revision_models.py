"""What people corrected: its table, and what the modules about it tell each other.

A **record** is what was read of a document, as JSON: data, provenance, checks, findings. **Revision** n is made from
revision n - 1 by **changes** and never altered; revision 0 is what was read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill.errors import Conflict, Refused
from waybill.messages import Message, msg

if TYPE_CHECKING:
    from waybill_documents.reading import Reading
    from waybill_documents.values import Extracted

Json = dict[str, Any]
Typed = tuple[str, str]
"""A path, as in `lines[213].amount`, and what somebody typed for its value."""


class RevisionRow(SQLModel, table=True):
    """One revision of a conversion. Written by `revisions`, once."""

    __tablename__ = "revisions"

    job_id: uuid.UUID = Field(primary_key=True)
    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    created_at: datetime = Field(
        sa_type=sa.DateTime(timezone=True),
        sa_column_kwargs={"server_default": sa.func.now()},
    )
    author: str
    """`key:<name>` or `session`."""
    changes: list[Json] = Field(sa_type=JSONB)
    """`{path, from, to, rule, typed}` each."""
    accepted: list[Json] | None = Field(default=None, sa_type=JSONB)
    """The findings that were left and that its author accepted."""
    xml_key: str
    xml_bytes: int = Field(sa_type=sa.BigInteger)
    xml_sha256: str
    record_key: str
    record_bytes: int = Field(sa_type=sa.BigInteger)
    record_sha256: str

    __table_args__ = (sa.CheckConstraint("number >= 1", name="revisions_counted"),)


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision as its owner sees it."""

    number: int
    created_at: datetime
    author: str
    changes: list[Json]
    accepted: list[Json] | None


class Difference(NamedTuple):
    """A value that is another one in another revision. None where there is none."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Revised:
    """What became of a record by what somebody typed. Nothing is stored yet."""

    reading: Reading
    changes: list[Json]
    refused: list[Json]
    """Findings about texts that could not be taken: nothing of them is in the record."""
    xml: Callable[[], bytes]
    """The XML of it; raises Unfit if it would not be valid."""

    @cached_property
    def record(self) -> Json:
        """The next record. It is made on demand, because it is long and a preview needs only parts of it."""
        return self.reading.to_json()

    @cached_property
    def findings(self) -> list[Json]:
        """What is still wrong with the document."""
        return [finding.to_json() for finding in self.reading.findings]

    @property
    def checks(self) -> list[Json]:
        """The checks of the record."""
        return [result.to_json() for result in self.reading.checks]

    @property
    def extracted(self) -> Extracted:
        """The values of the record, so that whoever shows them need not read it again."""
        return self.reading.extracted


class Reviser(Protocol):
    """Who knows documents and mappings. The library that does is not this one's to use."""

    def revise(self, record: Json, typed: Sequence[Typed]) -> Revised:
        """Apply what was typed, compute and check anew; the record given stays as it is.

        Takes the processor's time: call it in a thread. Refused if this record cannot be corrected, as when its mapping
        is another one by now.
        """


class Renderer(Protocol):
    """Who draws pages of documents, and takes out what is embedded in them."""

    async def render(self, upload_key: str, size: int, *, page: int, scale: int, job_id: uuid.UUID) -> bytes:
        """A page of the stored PDF as PNG, `scale` pixels to a point. NotFound if it has no such page."""

    async def attachment(self, upload_key: str, size: int, *, number: int, job_id: uuid.UUID) -> bytes:
        """A file that is embedded in the stored PDF. NotFound if it has no such attachment."""


class Outdated(Conflict):
    """Somebody saved another revision meanwhile."""

    latest: Revision
    paths: list[str]
    """Those of the caller's that were changed since the revision they looked at."""

    @classmethod
    def by(cls, latest: Revision, paths: list[str]) -> Outdated:
        number, author = latest.number, latest.author
        if paths:
            outdated = cls(msg("convert.review.outdated_same", number=number, author=author, paths=paths[:5]))
        else:
            outdated = cls(msg("convert.review.outdated", number=number, author=author))
        outdated.latest, outdated.paths = latest, paths
        return outdated


class Unfit(Refused):
    """What would be saved is not right: something could not be taken, or is still wrong."""

    def __init__(
        self, message: str | Message | None = None, *, refused: Sequence[Json] = (), findings: Sequence[Json] = ()
    ) -> None:
        super().__init__(message)
        self.refused = list(refused)
        self.findings = list(findings)
