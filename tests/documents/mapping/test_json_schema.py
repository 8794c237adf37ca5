"""The JSON Schema for editors accepts and refuses the same mappings as the loader."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from waybill_documents.catalogue import names
from waybill_documents.mapping.json_schema import as_text, schema

ROOT = Path(__file__).parents[3]
MAPPINGS = resources.files("waybill_documents") / "mappings"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_the_written_schema_is_current() -> None:
    assert (ROOT / "docs/mapping.schema.json").read_text(encoding="utf-8") == as_text()


@pytest.mark.parametrize("name", names())
def test_every_shipped_mapping_fits_it(validator: jsonschema.Draft202012Validator, name: str) -> None:
    document = json.loads((MAPPINGS / name / "mapping.json").read_text(encoding="utf-8"))
    assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize("name", names())
def test_a_shipped_mapping_is_called_like_its_folder(name: str) -> None:
    document = json.loads((MAPPINGS / name / "mapping.json").read_text(encoding="utf-8"))
    assert document["name"] == name
    written = document.get("$schema")
    if written is not None:
        folder = Path(str(MAPPINGS / name))
        assert (folder / written).resolve() == ROOT / "docs/mapping.schema.json"


LEAST: dict[str, Any] = {"format": 1, "name": "x", "title": "X"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": 2},
        {"name": "Upper"},
        {"unknown": 1},
        {"fields": {"total": {"label": "Total", "typ": "decimal"}}},
        {"fields": {"Total": {"label": "Total"}}},
        {"fields": {"total": {"label": "Total", "direction": "left"}}},
        {"tables": {"lines": {"columns": {}, "row": {"begins": "no"}}}},
        {"xml": {"root": {"name": "a b"}}},
        {"checks": {"sum": {"expect": 5}}},
    ],
    ids=lambda wrong: json.dumps(wrong),
)
def test_what_we_refuse_it_refuses(validator: jsonschema.Draft202012Validator, wrong: dict[str, Any]) -> None:
    assert list(validator.iter_errors(LEAST)) == []
    assert list(validator.iter_errors(LEAST | wrong)) != []


def test_one_phrase_is_as_good_as_a_list(validator: jsonschema.Draft202012Validator) -> None:
    for label in ("Total", ["Total", "Sum"]):
        assert list(validator.iter_errors(LEAST | {"fields": {"total": {"label": label}}})) == []
