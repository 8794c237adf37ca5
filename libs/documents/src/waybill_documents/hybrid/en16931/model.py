"""The semantic model: an invoice is a group of business terms, whatever syntax it came in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree


@dataclass(frozen=True, slots=True)
class TermValue:
    """A business term: its text, and its attributes such as the scheme of an identifier. Dates are ISO 8601."""

    text: str
    attributes: tuple[tuple[str, str], ...] = ()
    at: etree._Element | None = field(default=None, compare=False, repr=False)
    """The element it was read from. It is no part of the value."""

    def attribute(self, name: str) -> str:
        """An attribute, or an empty text."""
        return dict(self.attributes).get(name, "")


class TermGroup(dict[str, "list[TermValue | TermGroup]"]):
    """A business group: terms and groups by their number in the standard, as in `BT-1` and `BG-25`.

    Each has a list, because several may be repeated. Two groups are equal if they say the same.
    """

    def __init__(self, at: etree._Element | None = None) -> None:
        super().__init__()
        self.at = at
        """The element it was read from, if it has one of its own."""

    def add(self, name: str, value: TermValue | TermGroup) -> None:
        """One more of a term."""
        self.setdefault(name, []).append(value)

    def value(self, name: str) -> TermValue | None:
        """The first value of a term."""
        return next(self.values_of(name), None)

    def text(self, name: str) -> str:
        """The text of a term, or an empty text."""
        found = self.value(name)
        return found.text if found else ""

    def values_of(self, name: str) -> Iterator[TermValue]:
        """All values of a term."""
        return (one for one in self.get(name, ()) if isinstance(one, TermValue))

    def groups_of(self, name: str) -> Iterator[TermGroup]:
        """All groups of that number."""
        return (one for one in self.get(name, ()) if isinstance(one, TermGroup))
