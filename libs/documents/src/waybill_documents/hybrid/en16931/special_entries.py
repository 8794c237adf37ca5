"""Entries for parties, notes and prices, which the two syntaxes write in different ways."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lxml import etree

from waybill_documents.hybrid.en16931.entries import Context
from waybill_documents.hybrid.en16931.kinds import CODE, ID, TEXT
from waybill_documents.hybrid.en16931.model import TermGroup, TermValue
from waybill_documents.hybrid.en16931.paths import path
from waybill_documents.hybrid.en16931.source import TermSource
from waybill_documents.hybrid.en16931.syntaxes import Syntax, qualified, raw_text, text_of
from waybill_documents.hybrid.en16931.target import TermTarget

_SCHEME = ("schemeID",)


@dataclass(frozen=True, slots=True)
class Identifier:
    """The identifier of a party or place. CII has one element with a scheme and one without, UBL has one for both."""

    name: str
    ubl: str
    many: bool = False

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        names = ("ram:ID", "ram:GlobalID") if self.many else ("ram:GlobalID", "ram:ID")
        paths = names if source.syntax is Syntax.CII else (self.ubl,)
        found: list[TermValue] = []
        for at in map(path, paths):
            for element, evidence in source.find(context, at):
                if found and not self.many:
                    break
                value = ID.read(source, element, _SCHEME)
                if value is not None:
                    source.use(evidence)
                    found.append(value)
        # CII keeps those without a scheme apart, so their order among the others is no part of the model.
        for value in sorted(found, key=lambda one: bool(one.attributes)):
            group.add(self.name, value)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        for value in group.values_of(self.name):
            at = self.ubl
            if target.syntax is Syntax.CII:
                at = "ram:GlobalID" if value.attributes else "ram:ID"
            ID.write(target, target.place(context, path(at)), value)


@dataclass(frozen=True, slots=True)
class CustomerNumber:
    """The number that the seller gave the buyer, beside an identifier with a scheme. The core has room for one only.

    CII has both in the buyer. UBL has an element for it, which EN 16931 advises against but does not forbid.
    """

    name: str
    at = path("cbc:SupplierAssignedAccountID")
    buyer: str = "BG-7"
    identifier: str = "BT-46"

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        identifier = group.value(self.identifier)
        if identifier is None or not identifier.attributes:
            return
        at = path("ram:ID") if source.syntax is Syntax.CII else self.at
        for element, _ in source.find(context, at):
            value = ID.read(source, element, ())
            if value is not None:
                group.add(self.name, value)
                return

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        at = path("ram:ID") if target.syntax is Syntax.CII else self.at
        for value in group.values_of(self.name):
            ID.write(target, target.place(context, at), value)


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """BT-21 and BT-22. UBL has no place for the subject, so the binding puts it before the text: `#AAK#…`."""

    subject: str
    text: str
    prefixed = re.compile(r"#([A-Z]{3})#(.+)", re.DOTALL)

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        content = context
        if source.syntax is Syntax.CII:
            found = source.first(context, path("ram:Content"))
            if found is None:
                return
            content = found
            subject = source.first(context, path("ram:SubjectCode"))
            if subject is not None:
                # Another form of code could not be told from the text in UBL.
                if not re.fullmatch("[A-Z]{3}", text_of(subject)):
                    return
                value = ID.read(source, subject, ())
                group.setdefault(self.subject, []).extend([value] if value else [])
        value = TEXT.read(source, content, ())
        if value is None:
            return
        prefixed = self.prefixed.fullmatch(value.text)
        if self.subject not in group and prefixed:
            group.add(self.subject, TermValue(prefixed[1], (), content))
            value = replace(value, text=prefixed[2])
        group.add(self.text, value)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        subject, text = group.text(self.subject), group.text(self.text)
        if target.syntax is Syntax.UBL:
            context.text = f"#{subject}#{text}" if subject else text
            return
        etree.SubElement(context, qualified("ram:Content")).text = text
        if subject:
            etree.SubElement(context, qualified("ram:SubjectCode")).text = subject


@dataclass(frozen=True, slots=True)
class ContactName:
    """BT-41 and BT-56: one name in UBL, and a person or a department or both in CII."""

    name: str

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        paths = ("ram:PersonName", "ram:DepartmentName") if source.syntax is Syntax.CII else ("cbc:Name",)
        found = [source.first(context, path(one)) for one in paths]
        values = [TEXT.read(source, one, ()) for one in found if one is not None]
        texts = [value.text for value in values if value is not None]
        if values and texts:
            shown = texts[0] if len(texts) == 1 else ", ".join(text.strip() for text in texts)
            group.add(self.name, TermValue(shown, (), values[0].at if values[0] else None))

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        at = "ram:PersonName" if target.syntax is Syntax.CII else "cbc:Name"
        for value in group.values_of(self.name):
            TEXT.write(target, target.place(context, path(at)), value)


@dataclass(frozen=True, slots=True)
class BaseQuantity:
    """BT-149, with the net price, the gross price or both in CII. Two different ones are no term of the standard."""

    name: str
    ubl = path("cac:Price/cbc:BaseQuantity")
    net = path("ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:BasisQuantity")
    gross = path("ram:SpecifiedLineTradeAgreement/ram:GrossPriceProductTradePrice/ram:BasisQuantity")
    gross_price: str = "BT-148"

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        paths = (self.net, self.gross) if source.syntax is Syntax.CII else (self.ubl,)
        for at in paths:
            for element, _ in source.find(context, at):
                stated = group.value(self.name)
                if stated is not None and not _same_quantity(element, stated):
                    continue
                value = CODE.read(source, element, ("unitCode",))
                if value is not None and stated is None:
                    group.add(self.name, value)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        for value in group.values_of(self.name):
            paths = [self.ubl]
            if target.syntax is Syntax.CII:
                paths = [self.net, self.gross] if self.gross_price in group else [self.net]
            for at in paths:
                CODE.write(target, target.place(context, at), value)


def _same_quantity(element: etree._Element, stated: TermValue) -> bool:
    unit = stated.attribute("unitCode")
    text = raw_text(element).strip()
    return (element.get("unitCode") or unit) == unit and (text == stated.text or _number(text) == _number(stated.text))


_NUMBER = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*?)0*)?")


def _number(text: str) -> tuple[str, str] | str:
    """A positive number without meaningless zeros, for comparison."""
    found = _NUMBER.fullmatch(text)
    return (found[1], found[2] or "") if found and not text.startswith("-") else text
