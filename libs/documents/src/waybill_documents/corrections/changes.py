"""One correction: which value, from what to what. Changes are kept for ever and replayed, so they are plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from waybill_documents.faults import MappingFault

Typed = tuple[str, str]
"""A path, and what a person typed there."""

CORRECTED = "corrected"
"""The rule of a value that a person typed."""

Plain = str | int | None
"""A value as JSON carries it; decimals and dates are strings."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that became another one."""

    path: str
    before: Plain
    after: Plain
    rule: str
    """The part of the mapping that finds this value: what a report of corrections counts."""
    typed: str
    """What the person typed."""

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "from": self.before, "to": self.after, "rule": self.rule, "typed": self.typed}

    @classmethod
    def from_json(cls, given: Any) -> Change:
        """Raises `MappingFault` for what is no change."""
        if not isinstance(given, dict) or given.keys() != {"path", "from", "to", "rule", "typed"}:
            raise MappingFault("a change has a path, from, to, a rule and what was typed")
        texts = [given["path"], given["rule"], given["typed"]]
        values = [given["from"], given["to"]]
        if not all(isinstance(text, str) for text in texts) or not all(_is_plain(value) for value in values):
            raise MappingFault("a change is made of texts, whole numbers and nulls")
        return cls(given["path"], given["from"], given["to"], given["rule"], given["typed"])


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
