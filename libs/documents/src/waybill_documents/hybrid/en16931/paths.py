"""The paths of the tables: where a term stands, for reading and for writing.

`cac:PartyTaxScheme+[cac:TaxScheme/cbc:ID=VAT]/cbc:CompanyID` is the company number in a tax registration with that
scheme. The plus sign means that each value gets an element of its own there. `!=` is for what must not be so, and may
end in `:FC`, the value to write. A path may end in an attribute.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_STEP = re.compile(r"(?P<tag>\w+:\w+)(?P<own>\+?)(?P<conditions>(\[[^\]]*\])*)")
_CONDITION = re.compile(
    r"\[(?P<path>[\w:/]*?)/?(@(?P<attribute>\w+))?(?P<sign>!?=)(?P<value>[^\]:]*)(:(?P<writes>\w+))?\]"
)


@dataclass(frozen=True, slots=True)
class PathCondition:
    """What must hold for an element of a path: an element below it, or an attribute, has a value or does not."""

    below: tuple[str, ...]
    attribute: str
    value: str
    equal: bool
    writes: str
    """What is written so that it holds; empty if nothing needs to be."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One element of a path."""

    tag: str
    own: bool
    """Whether each value gets its own."""
    conditions: tuple[PathCondition, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path. Without steps, it is the context itself."""

    text: str
    steps: tuple[PathStep, ...]
    attribute: str

    @property
    def plain(self) -> str:
        """The path without conditions, for a person."""
        shown = "/".join(step.tag for step in self.steps)
        return f"{shown}/@{self.attribute}" if self.attribute else shown


@functools.cache
def path(text: str) -> Path:
    """The path that is written so."""
    elements, _, attribute = text.partition("/@") if "[" not in text.rpartition("/")[2] else (text, "", "")
    steps = []
    at = 0
    while at < len(elements):
        found = _STEP.match(elements, at)
        if found is None or (found.end() < len(elements) and elements[found.end()] != "/"):
            raise ValueError(f"not a path: {text}")
        conditions = tuple(_condition(one) for one in _CONDITION.finditer(found["conditions"]))
        steps.append(PathStep(found["tag"], bool(found["own"]), conditions))
        at = found.end() + 1
    return Path(text, tuple(steps), attribute)


def _condition(found: re.Match[str]) -> PathCondition:
    equal = found["sign"] == "="
    below = tuple(found["path"].split("/")) if found["path"] else ()
    writes = found["value"] if equal else (found["writes"] or "")
    return PathCondition(below, found["attribute"] or "", found["value"], equal, writes)
