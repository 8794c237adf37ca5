"""A language's messages, read from its file once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markupsafe import Markup, escape

HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Message:
    other: str
    one: str | None = None
    """Said of exactly one thing, in languages that make a difference."""

    def filled(self, values: Mapping[str, object]) -> str:
        return (self._one if values.get("count") == 1 else self._other) % values

    def filled_with_markup(self, values: Mapping[str, object]) -> Markup:
        """The same; everything is escaped that is no markup."""
        return escape(self._one if values.get("count") == 1 else self._other) % values

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(HOLE.findall(self.other))

    # A long queue says thousands of messages: Python's own formatting is the fastest way to fill them.
    @cached_property
    def _other(self) -> str:
        return HOLE.sub(r"%(\1)s", self.other.replace("%", "%%"))

    @cached_property
    def _one(self) -> str:
        return self._other if self.one is None else HOLE.sub(r"%(\1)s", self.one.replace("%", "%%"))


Catalogue = dict[str, Message]
"""Messages by key: `queue.title` is the message `title` of the table `queue`."""


def read(path: Path) -> Catalogue:
    tables = tomllib.loads(path.read_text("utf-8"))
    return {
        f"{table}.{name}": Message(found) if isinstance(found, str) else Message(found["other"], found["one"])
        for table, messages in tables.items()
        for name, found in messages.items()
    }
