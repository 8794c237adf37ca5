"""The JSON of revisions, and its schemas for the OpenAPI document."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from pydantic import ConfigDict, Field

from waybill.web.schemas import Schema
from waybill_convert.review_work import Preview
from waybill_convert.revision_models import Difference, Revision

MOST_CHANGES = 1000
MOST_CORRECTION_BYTES = 2 * 1024 * 1024
"""The largest request with corrections. A thousand changes fit if they are 2,000 characters long on average."""
LARGEST_NUMBER = 2**31 - 1

_CHANGE = {
    "path": "lines[3].amount",
    "from": "370500.00",
    "to": "37050.00",
    "rule": "tables.lines.columns.amount",
    "typed": "37.050,00",
}


def revision_json(job_id: uuid.UUID, revision: Revision) -> dict[str, Any]:
    self = f"/api/jobs/{job_id}/revisions/{revision.number}"
    return {
        "number": revision.number,
        "created_at": revision.created_at.isoformat().replace("+00:00", "Z"),
        "author": revision.author,
        "changes": revision.changes,
        "accepted": revision.accepted,
        "links": {
            "self": self,
            "download": f"{self}/download",
            "diff": f"/api/jobs/{job_id}/revisions/{revision.number - 1}/diff/{revision.number}",
        },
    }


def revisions_json(job_id: uuid.UUID, latest: int, revisions: list[Revision]) -> dict[str, Any]:
    return {"latest": latest, "revisions": [revision_json(job_id, revision) for revision in revisions]}


def preview_json(base: int, preview: Preview) -> dict[str, Any]:
    return {
        "base": base,
        "changes": preview.changes,
        "refused": preview.refused,
        "findings": preview.findings,
        "checks": preview.checks,
        "values": [
            {"path": path, "value": value, "confidence": confidence} for path, value, confidence in preview.moved
        ],
    }


def diff_json(before: int, after: int, differences: list[Difference]) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "differences": [{"path": path, "from": old, "to": new} for path, old, new in differences],
    }


class CorrectionSchema(Schema):
    path: str = Field(max_length=200, examples=["lines[3].amount"], description="Which value, counted from 0.")
    value: str | None = Field(
        max_length=10_000,
        examples=["37.050,00"],
        description="As a person would type it: numbers and dates as in the document, or plainly (`37050.00`,"
        " `2025-08-07`). Null or empty removes the value.",
    )


class CorrectionsSchema(Schema):
    """Corrections of the latest revision."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"base": 0, "changes": [{"path": "lines[3].amount", "value": "37.050,00"}], "accept": False}
        },
    )

    base: int = Field(ge=0, le=LARGEST_NUMBER, description="The revision you looked at; 0 is what was read.")
    changes: list[CorrectionSchema] = Field(max_length=MOST_CHANGES)
    accept: bool = Field(False, description="Save it although something is still wrong.")
    preview: bool = Field(False, description="Save nothing, but say what would change.")


class ApprovalSchema(Schema):
    """A person has looked at the latest revision, and it is right."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"base": 0}})

    base: int = Field(ge=0, le=LARGEST_NUMBER, description="The revision you looked at; 0 is what was read.")


class ChangeSchema(Schema):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    path: str
    before: str | int | None = Field(alias="from")
    after: str | int | None = Field(alias="to")
    rule: str = Field(description="The part of the mapping that had found it.")
    typed: str


class RevisionLinksSchema(Schema):
    self: str
    download: str
    diff: str


class RevisionSchema(Schema):
    """A saved correction. It never changes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": revision_json(
                uuid.UUID("01890000-0000-7000-8000-000000000001"),
                Revision(1, datetime(2026, 3, 2, 9, 42, tzinfo=UTC), "key:erp", [_CHANGE], None),
            )
        },
    )

    number: int
    created_at: datetime
    author: str = Field(description="`key:<name>`, or `session` for a browser that did not sign in.")
    changes: list[ChangeSchema]
    accepted: list[dict[str, Any]] | None = Field(description="What was still wrong, and was accepted.")
    links: RevisionLinksSchema


class RevisionsSchema(Schema):
    latest: int = Field(description="0 if nothing was corrected yet.")
    revisions: list[RevisionSchema]


class AttachmentSchema(Schema):
    number: int
    name: str
    media_type: str = Field(description="What the document claims it is.")
    bytes: int
    sha256: str | None = Field(description="Null if the file is damaged or too large to be read.")
    links: dict[str, str]


class AttachmentsSchema(Schema):
    attachments: list[AttachmentSchema]


def attachments_json(job_id: uuid.UUID, listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "attachments": [
            {**each, "links": {"download": f"/api/jobs/{job_id}/attachments/{each['number']}"}} for each in listed
        ]
    }


class ValueSchema(Schema):
    path: str
    value: str | int | bool | None
    confidence: int | None


class PreviewSchema(Schema):
    """What a correction would change. Nothing was saved."""

    base: int
    changes: list[ChangeSchema]
    refused: list[dict[str, Any]] = Field(description="Findings about texts that cannot be read.")
    findings: list[dict[str, Any]] = Field(description="What would still be wrong.")
    checks: list[dict[str, Any]]
    values: list[ValueSchema] = Field(description="Values that would differ from `base`, or whose confidence would.")


class DifferenceSchema(Schema):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    path: str
    before: str | int | bool | None = Field(alias="from")
    after: str | int | bool | None = Field(alias="to")


class DiffSchema(Schema):
    before: int
    after: int
    differences: list[DifferenceSchema]
