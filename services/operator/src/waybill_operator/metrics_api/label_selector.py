"""Label selectors as Kubernetes writes them into an address: `pool=a`, `pool in (a,b)`, `pool!=c`, `!pool`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MOST_CHARACTERS = 4096
_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,315})"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_VALUE_ALONE = re.compile(_VALUE)


class BadSelector(ValueError):
    """A sentence for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Literal["in", "notin", "exists", "missing"]
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":  # as in Kubernetes, whoever lacks the label matches
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "missing":
                return value is None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        if len(text) > MOST_CHARACTERS:
            raise BadSelector(f"The label selector has more than {MOST_CHARACTERS} characters.")
        return cls(tuple(_requirement(part) for part in _parts(text))) if text.strip() else cls()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.requirements)


def _parts(text: str) -> list[str]:
    """Split at the commas that are not inside of parentheses."""
    parts, depth, begin = [], 0, 0
    for where, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:where])
            begin = where + 1
    return [*parts, text[begin:]]


def _requirement(text: str) -> Requirement:
    if found := _SET.fullmatch(text):
        values = [one.strip() for one in found[3].split(",")]
        if all(_VALUE_ALONE.fullmatch(one) for one in values):
            return Requirement(found[1], "in" if found[2] == "in" else "notin", frozenset(values))
    elif found := _EQUALITY.fullmatch(text):
        return Requirement(found[1], "notin" if found[2] == "!=" else "in", frozenset({found[3]}))
    elif found := _EXISTS.fullmatch(text):
        return Requirement(found[2], "missing" if found[1] else "exists")
    raise BadSelector(f"The label selector cannot be read at {text.strip()[:100]!r}.")
