"""What a sentence is put together from: the parts of a finding, and what values are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Names = Callable[[str], str]
"""What a value, a table or a check is called, by its path or rule."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A finding that is about to be said."""

    finding: dict[str, Any]
    params: dict[str, Any]
    name: Names

    def __getitem__(self, key: str) -> str:
        """A part as text; empty if it is not there."""
        value = self.params.get(key)
        return "" if value is None else str(value)

    @property
    def rule(self) -> str:
        return str(self.finding.get("rule") or "")

    @property
    def path(self) -> str:
        return str(self.finding.get("path") or "")

    def value_name(self) -> str:
        """What the value is called that the finding is about."""
        if "column" in self.params:
            return self.name(f"{self['table']}.{self['column']}")
        return self.name(self["field"] or self.path or self.rule)

    def called(self, label: str) -> str:
        """What a value is called whose name stands in the finding as words: `tax base`, a column's or a field's."""
        snake = label.replace(" ", "_")
        table = self.path.partition("[")[0] if "[" in self.path else ""
        of_table = self.name(f"{table}.{snake}") if table else label
        return of_table if of_table != label else self.name(snake)

    def in_line(self, word: str, sentence: str) -> str:
        """The sentence, after the line it is about."""
        line = self.params.get("line")
        return f"{word} {line}: {sentence}" if line else sentence


def listed(phrases: Sequence[Any], last: str) -> str:
    """Phrases in quotes, with a word before the last one."""
    quoted = [f"“{phrase}”" for phrase in phrases]
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)
