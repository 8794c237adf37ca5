"""The fields that a language model is to fill in each file: a JSON Schema that came with the batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable

_MOST_BYTES = 16 * 1024


@dataclass(frozen=True)
class WantedFields:
    schema: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> WantedFields | None:
        """The schema in a form's field; None if it is empty. Raises Refused if it is none."""
        if not text.strip():
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise Refused(msg("batches.schema.form")) from None
        if not isinstance(found, dict) or len(text.encode()) > _MOST_BYTES or not is_storable(json.dumps(found)):
            raise Refused(msg("batches.schema.form"))
        return cls(found)
