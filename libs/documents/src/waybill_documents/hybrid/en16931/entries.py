"""The entries of the table. Each reads its part of a document into a group, and writes it from one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from lxml import etree

from waybill_documents.hybrid.en16931.kinds import TEXT, TermKind
from waybill_documents.hybrid.en16931.model import TermGroup, TermValue
from waybill_documents.hybrid.en16931.paths import Path, path
from waybill_documents.hybrid.en16931.source import TermSource
from waybill_documents.hybrid.en16931.syntaxes import Syntax, text_of
from waybill_documents.hybrid.en16931.target import TermTarget

Context = etree._Element


class Entry(Protocol):
    """A row of the table."""

    def read(self, source: TermSource, context: Context, group: TermGroup, /) -> None:
        """Put what the document says into the group."""

    def write(self, target: TermTarget, context: Context, group: TermGroup, /) -> None:
        """Write what the group says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where an entry stands in each syntax. Nowhere is None; `also_` are further places to read from."""

    cii: str | None
    ubl: str | None
    ubl_credit_note: str | None = None
    """Where a CreditNote has it, if that is elsewhere; empty for nowhere."""
    also_cii: tuple[str, ...] = ()
    also_ubl: tuple[str, ...] = ()

    def to_read(self, source: TermSource) -> Iterator[Path]:
        """The paths to look at, in order."""
        first = self._at(source.syntax, credit_note=source.credit_note)
        if first is not None:
            yield path(first)
        yield from map(path, self.also_cii if source.syntax is Syntax.CII else self.also_ubl)

    def to_write(self, target: TermTarget) -> Path | None:
        """The path to write to."""
        at = self._at(target.syntax, credit_note=target.credit_note)
        return path(at) if at is not None else None

    def _at(self, syntax: Syntax, *, credit_note: bool) -> str | None:
        if syntax is Syntax.CII:
            return self.cii
        at = self.ubl if self.ubl_credit_note is None or not credit_note else self.ubl_credit_note
        return at or None


@dataclass(frozen=True, slots=True)
class Term:
    """A business term."""

    name: str
    places: Places
    kind: TermKind = TEXT
    attributes: tuple[str, ...] = ()
    """Attributes that belong to the value. They have the same names in both syntaxes."""
    many: bool = False
    agree: bool = False
    """Whether the document may repeat the same value."""

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        chosen: TermValue | None = None
        for at in self.places.to_read(source):
            for element, evidence in source.find(context, at):
                if chosen is not None and self.agree and not self._repeats(source, element, at, chosen):
                    continue
                value = self._value(source, element, at)
                if value is None:
                    continue
                source.use(evidence)
                if chosen is None or self.many:
                    group.add(self.name, value)
                chosen = chosen or value
                if not self.many and not self.agree:
                    return

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        at = self.places.to_write(target)
        for value in group.values_of(self.name):
            if at is None:
                target.lost.append(value)
            elif at.attribute:
                target.place(context, at, new=False).set(at.attribute, value.text)
            else:
                self.kind.write(target, target.place(context, at), value)

    def _value(self, source: TermSource, element: Context, at: Path) -> TermValue | None:
        if at.attribute:
            text = (element.get(at.attribute) or "").strip()
            source.used_attributes.add((element, at.attribute))
            return TermValue(text, (), element) if text else None
        unreadable = len(source.unreadable)
        value = self.kind.read(source, element, self.attributes)
        source.unreadable[unreadable:] = [(self.name, one) for _, one in source.unreadable[unreadable:]]
        return value

    def _repeats(self, source: TermSource, element: Context, at: Path, chosen: TermValue) -> bool:
        """Whether an element says the same again. It must not be counted as used if it does not."""
        trial = TermSource(source.root, source.syntax, source.currency)
        return self._value(trial, element, at) == chosen


@dataclass(frozen=True, slots=True)
class EntryPart:
    """A business group, in an element of its own."""

    name: str
    places: Places
    entries: tuple[Entry, ...]
    many: bool = False

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        for at in self.places.to_read(source):
            for element, evidence in source.find(context, at):
                part = TermGroup(element)
                for entry in self.entries:
                    entry.read(source, element, part)
                if part:
                    source.use(evidence)
                    group.add(self.name, part)
                    if not self.many:
                        return

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        at = self.places.to_write(target)
        for part in group.groups_of(self.name):
            if at is None:
                continue
            element = target.place(context, at, new=self.many)
            for entry in self.entries:
                entry.write(target, element, part)


@dataclass(frozen=True, slots=True)
class Filler:
    """An element that one syntax demands beside a term, although the standard has nothing to say there.

    Another text than the usual one changes no business term. It is noted, so that nobody misses it unawares.
    """

    places: Places
    usual: str
    when: str
    """The term beside which it stands."""
    unless: str = ""

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        if self.when not in group:
            return
        for at in self.places.to_read(source):
            for element, _ in source.find(context, at):
                if element in source.used:
                    continue
                source.used.add(element)
                if text_of(element).lower() not in {"", self.usual.lower(), group.text(self.when).lower()}:
                    source.fillers.append(element)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        at = self.places.to_write(target)
        if at is not None and self.when in group and self.unless not in group:
            target.place(context, at).text = self.usual


@dataclass(frozen=True, slots=True)
class Ignored:
    """An element or attribute with this value, which says nothing that its place does not say already."""

    places: Places
    value: str

    def read(self, source: TermSource, context: Context, _group: TermGroup) -> None:
        for at in self.places.to_read(source):
            for element, _ in source.find(context, at):
                if at.attribute and element.get(at.attribute) == self.value:
                    source.used_attributes.add((element, at.attribute))
                elif not at.attribute and text_of(element) == self.value:
                    source.used.add(element)

    def write(self, _target: TermTarget, _context: Context, _group: TermGroup) -> None:
        """Nothing is written."""


def term(
    name: str,
    cii: str | None,
    ubl: str | None,
    kind: TermKind = TEXT,
    *,
    attributes: tuple[str, ...] = (),
    many: bool = False,
    agree: bool = False,
    ubl_credit_note: str | None = None,
    also_cii: tuple[str, ...] = (),
    also_ubl: tuple[str, ...] = (),
) -> Term:
    """A business term of the table."""
    places = Places(cii=cii, ubl=ubl, ubl_credit_note=ubl_credit_note, also_cii=also_cii, also_ubl=also_ubl)
    return Term(name, places, kind, attributes, many, agree)


def part(
    name: str,
    cii: str,
    ubl: str,
    *entries: Entry,
    many: bool = False,
    ubl_credit_note: str | None = None,
    also_cii: tuple[str, ...] = (),
    also_ubl: tuple[str, ...] = (),
) -> EntryPart:
    """A business group of the table."""
    places = Places(cii=cii, ubl=ubl, ubl_credit_note=ubl_credit_note, also_cii=also_cii, also_ubl=also_ubl)
    return EntryPart(name, places, entries, many)


def filler(usual: str, *, when: str, unless: str = "", cii: str | None = None, ubl: str | None = None) -> Filler:
    """An element that a syntax demands."""
    return Filler(Places(cii=cii, ubl=ubl), usual, when, unless)


def ignored(value: str, *, cii: str | None = None, ubl: str | None = None) -> Ignored:
    """A value that says nothing."""
    return Ignored(Places(cii=cii, ubl=ubl), value)
