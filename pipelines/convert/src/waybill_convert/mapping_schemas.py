"""A tenant's mappings as JSON: what `/api/mappings` takes and answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from waybill_convert.mapping_catalogue import MappingChoice, MappingOrigin
from waybill_convert.mapping_models import SHARED, MappingSample, SampleResult, TenantMapping, WholeMapping
from waybill_documents.mapping_files import SCHEMA_NAME, MappingFiles

MOST_PUSH_BYTES = 3 * 1024 * 1024
"""A mapping with its schemas, as JSON."""


class MappingPushSchema(BaseModel):
    """A mapping and the schemas that it names."""

    model_config = ConfigDict(extra="forbid")

    document: str = Field(min_length=2, max_length=1_000_000, description="The text of `mapping.json`.")
    schemas: dict[Annotated[str, Field(pattern=rf"^{SCHEMA_NAME}$")], str] = Field(
        default_factory=dict, max_length=50, description="Schemas beside it, by the names of their files."
    )

    def files(self) -> MappingFiles:
        return MappingFiles(self.document, self.schemas)


class ChoiceSchema(BaseModel):
    name: str
    title: str
    sha256: str
    origin: MappingOrigin


class MappingSchema(BaseModel):
    name: str = Field(examples=["acme_v1"])
    title: str
    state: str = Field(examples=["draft", "published", "retired"])
    shared: bool = Field(description="An operator shares it with all tenants.")
    sha256: str
    bytes: int
    author: str
    samples: int
    created_at: str
    changed_at: str
    published_at: str | None
    retired_at: str | None


class MappingsSchema(BaseModel):
    mappings: list[str] = Field(description="The names that can be chosen now.")
    default: str
    choices: list[ChoiceSchema] = Field(description="The same with their titles and hashes.")
    own: list[MappingSchema] = Field(
        description="Your tenant's mappings and shared ones, in every state; empty without the permission to read them."
    )


class MappingSampleSchema(BaseModel):
    id: str
    name: str
    bytes: int
    sha256: str
    has_expected: bool
    created_at: str


class WholeMappingSchema(MappingSchema):
    document: str
    schemas: dict[str, str]
    documents: list[MappingSampleSchema] = Field(description="The samples that it is tested with.")


class SampleDifferenceSchema(BaseModel):
    path: str
    expected: str | None
    found: str | None


class SampleResultSchema(BaseModel):
    sample: str
    passed: bool
    findings: list[dict[str, Any]] = Field(description="Why it could not be converted.")
    differences: list[SampleDifferenceSchema] = Field(description="Where the data differs from what was expected.")


class TestSchema(BaseModel):
    name: str
    passed: bool
    samples: list[SampleResultSchema]


class PublishedSchema(WholeMappingSchema):
    tested: list[SampleResultSchema] = Field(
        description="Empty if the mapping has no samples, so that nothing was tried."
    )


def mappings_json(choices: Iterable[MappingChoice], own: Iterable[TenantMapping], *, default: str) -> dict[str, Any]:
    by_name = sorted(choices, key=lambda each: each.name)
    shown = [
        {"name": each.name, "title": each.title, "sha256": each.sha256, "origin": each.origin.value} for each in by_name
    ]
    return {
        "mappings": [each.name for each in by_name],
        "default": default,
        "choices": shown,
        "own": [mapping_json(each) for each in own],
    }


def mapping_json(mapping: TenantMapping) -> dict[str, Any]:
    return {
        "name": mapping.name,
        "title": mapping.title,
        "state": mapping.state.value,
        "shared": mapping.tenant == SHARED,
        "sha256": mapping.sha256,
        "bytes": mapping.bytes,
        "author": mapping.author,
        "samples": mapping.samples,
        "created_at": mapping.created_at,
        "changed_at": mapping.changed_at,
        "published_at": mapping.published_at,
        "retired_at": mapping.retired_at,
    }


def whole_json(found: WholeMapping) -> dict[str, Any]:
    return {
        **mapping_json(found.mapping),
        "document": found.files.document,
        "schemas": dict(found.files.schemas),
        "documents": [sample_json(each) for each in found.samples],
    }


def sample_json(sample: MappingSample) -> dict[str, Any]:
    return {
        "id": str(sample.id),
        "name": sample.name,
        "bytes": sample.bytes,
        "sha256": sample.sha256,
        "has_expected": sample.expected is not None,
        "created_at": sample.created_at,
    }


def results_json(results: Iterable[SampleResult]) -> list[dict[str, Any]]:
    return [
        {
            "sample": each.sample.name,
            "passed": each.passed,
            "findings": each.findings,
            "differences": each.differences,
        }
        for each in results
    ]
