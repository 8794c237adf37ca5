"""The mapping language as a JSON Schema, for editors and other validators."""

from __future__ import annotations

import json
from typing import Any

from waybill_documents.mapping.model import Mapping


def schema() -> dict[str, Any]:
    """The schema of a mapping file."""
    made = Mapping.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "Waybill mapping"
    made["properties"]["$schema"] = {"type": "string"}
    _close(made)
    return made


def _close(node: Any) -> None:
    """Forbid other names. Pydantic writes the pattern of names but does not exclude the rest."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node["additionalProperties"] = False
        for inner in node.values():
            _close(inner)
    elif isinstance(node, list):
        for inner in node:
            _close(inner)


def as_text() -> str:
    """The schema as it is written to `docs/mapping.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
