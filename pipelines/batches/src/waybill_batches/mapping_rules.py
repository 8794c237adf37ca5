"""Which mapping a file of a batch is converted by: rules by file pattern, of which the first that matches decides."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Any

from waybill.errors import Refused
from waybill.files import FileType
from waybill.messages import msg
from waybill.pg_text import is_storable

MOST_RULES = 50
_LONGEST_PATTERN = 200
_LONGEST_NAME = 64

CONVERTIBLE = frozenset({FileType.PDF, FileType.XML, FileType.XLSX, FileType.TEXT})
"""What a mapping can read. Everything else is extracted without one, whatever the rules say."""


@dataclass(frozen=True)
class MappingRule:
    pattern: str
    """As in a shell, on the whole path and without regard to case: `invoices/*.pdf`. `*` crosses folders."""
    mapping: str
    """Empty: files that match are extracted without a mapping."""

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(translate(self.pattern.lower()))

    def matches(self, path: str) -> bool:
        return self._regex.match(path.lower()) is not None


@dataclass(frozen=True)
class MappingRules:
    rules: Sequence[MappingRule] = ()

    def mapping_for(self, path: str, kind: str) -> str | None:
        """The mapping for a file, or None if it is extracted without one."""
        if kind not in CONVERTIBLE:
            return None
        for rule in self.rules:
            if rule.matches(path):
                return rule.mapping or None
        return None

    @property
    def mappings(self) -> set[str]:
        return {rule.mapping for rule in self.rules if rule.mapping}

    def as_json(self) -> list[dict[str, str]]:
        return [{"pattern": rule.pattern, "mapping": rule.mapping} for rule in self.rules]

    @classmethod
    def parse(cls, text: str) -> MappingRules:
        """The rules in a form's field. Raises Refused if they are malformed."""
        if not text.strip():
            return cls()
        try:
            return cls.of(json.loads(text))
        except (ValueError, RecursionError):
            raise Refused(msg("batches.rules.form")) from None

    @classmethod
    def of(cls, found: Any) -> MappingRules:
        """The rules in a JSON value. Raises Refused if they are malformed."""
        if not isinstance(found, list):
            raise Refused(msg("batches.rules.form"))
        if len(found) > MOST_RULES:
            raise Refused(msg("batches.rules.too_many", number=MOST_RULES))
        return cls(tuple(_rule(each) for each in found))


def _rule(found: Any) -> MappingRule:
    match found:
        case {"pattern": str(pattern), "mapping": str(mapping), **rest} if not rest:
            mapping = mapping.strip().removesuffix(".json")
            if (
                0 < len(pattern) <= _LONGEST_PATTERN
                and len(mapping) <= _LONGEST_NAME
                and is_storable(pattern + mapping)
            ):
                return MappingRule(pattern, mapping)
    raise Refused(msg("batches.rules.form"))
