"""Schemas of the OpenAPI document that belong to no pipeline."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Schema(BaseModel):
    """An answer, or a part of one, without members that it does not name."""

    model_config = ConfigDict(extra="forbid")


class ProblemSchema(BaseModel):
    """An RFC 9457 problem document. Some have members of their own, such as `job_id`."""

    type: str
    title: str
    status: int
    detail: str = Field(description="One English sentence for the person who asked.")
    code: str = Field(examples=["NOT_FOUND"])
    key: str | None = Field(
        description="The sentence's key, for other languages; null for a sentence that has none.",
        examples=["convert.no_job"],
    )
    params: dict[str, Any] = Field(description="What the sentence says beyond its key.")
