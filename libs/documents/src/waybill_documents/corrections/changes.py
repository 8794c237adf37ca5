"""One correction: which value changed, from what to what. Changes are plain JSON: they are kept and replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from waybill_documents.faults import MappingFault
from waybill_documents.messages import DocumentMessage

Typed = tuple[str, str]
"""A path, and the text that a person typed there."""

CORRECTED = "corrected"
"""The rule of a value that a person typed."""

Plain = str | int | None
"""A value for JSON; decimals and dates are strings."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one value."""

    path: str
    before: Plain
    after: Plain
    rule: str
    """The part of the mapping that finds this value. The correction report counts by it."""
    typed: str
    """What the person typed."""

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "from": self.before, "to": self.after, "rule": self.rule, "typed": self.typed}

    @classmethod
    def from_json(cls, given: Any) -> Change:
        """Raises `MappingFault` for anything that is not a change."""
        if not isinstance(given, dict) or given.keys() != {"path", "from", "to", "rule", "typed"}:
            raise MappingFault(DocumentMessage("record.change_members"))
        texts = [given["path"], given["rule"], given["typed"]]
        values = [given["from"], given["to"]]
        if not all(isinstance(text, str) for text in texts) or not all(_is_plain(value) for value in values):
            raise MappingFault(DocumentMessage("record.change_types"))
        return cls(given["path"], given["from"], given["to"], given["rule"], given["typed"])


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
