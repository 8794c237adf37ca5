"""Entries for what the two syntaxes write in different ways."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lxml import etree

from waybill_documents.hybrid.en16931.entries import Context, Term
from waybill_documents.hybrid.en16931.kinds import AMOUNT, CODE, ID, TEXT
from waybill_documents.hybrid.en16931.model import Group, Value
from waybill_documents.hybrid.en16931.paths import Path, path
from waybill_documents.hybrid.en16931.source import Source
from waybill_documents.hybrid.en16931.syntaxes import Syntax, qualified, raw_text, text_of
from waybill_documents.hybrid.en16931.target import Target

_SCHEME = ("schemeID",)


@dataclass(frozen=True, slots=True)
class Identifier:
    """The identifier of a party or place. CII has one element with a scheme and one without, UBL has one for both."""

    name: str
    ubl: str
    many: bool = False

    def read(self, source: Source, context: Context, group: Group) -> None:
        names = ("ram:ID", "ram:GlobalID") if self.many else ("ram:GlobalID", "ram:ID")
        paths = names if source.syntax is Syntax.CII else (self.ubl,)
        found: list[Value] = []
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

    def write(self, target: Target, context: Context, group: Group) -> None:
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

    def read(self, source: Source, context: Context, group: Group) -> None:
        identifier = group.value(self.identifier)
        if identifier is None or not identifier.attributes:
            return
        at = path("ram:ID") if source.syntax is Syntax.CII else self.at
        for element, _ in source.find(context, at):
            value = ID.read(source, element, ())
            if value is not None:
                group.add(self.name, value)
                return

    def write(self, target: Target, context: Context, group: Group) -> None:
        at = path("ram:ID") if target.syntax is Syntax.CII else self.at
        for value in group.values_of(self.name):
            ID.write(target, target.place(context, at), value)


@dataclass(frozen=True, slots=True)
class Note:
    """BT-21 and BT-22. UBL has no place for the subject, so the binding puts it before the text: `#AAK#…`."""

    subject: str
    text: str
    prefixed = re.compile(r"#([A-Z]{3})#(.+)", re.DOTALL)

    def read(self, source: Source, context: Context, group: Group) -> None:
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
            group.add(self.subject, Value(prefixed[1], (), content))
            value = replace(value, text=prefixed[2])
        group.add(self.text, value)

    def write(self, target: Target, context: Context, group: Group) -> None:
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

    def read(self, source: Source, context: Context, group: Group) -> None:
        paths = ("ram:PersonName", "ram:DepartmentName") if source.syntax is Syntax.CII else ("cbc:Name",)
        found = [source.first(context, path(one)) for one in paths]
        values = [TEXT.read(source, one, ()) for one in found if one is not None]
        texts = [value.text for value in values if value is not None]
        if values and texts:
            shown = texts[0] if len(texts) == 1 else ", ".join(text.strip() for text in texts)
            group.add(self.name, Value(shown, (), values[0].at if values[0] else None))

    def write(self, target: Target, context: Context, group: Group) -> None:
        at = "ram:PersonName" if target.syntax is Syntax.CII else "cbc:Name"
        for value in group.values_of(self.name):
            TEXT.write(target, target.place(context, path(at)), value)


@dataclass(frozen=True, slots=True)
class Account:
    """BT-84: an IBAN or another account number, which CII keeps apart."""

    name: str
    ubl = path("cac:PayeeFinancialAccount/cbc:ID")
    iban = path("ram:PayeePartyCreditorFinancialAccount/ram:IBANID")
    other = path("ram:PayeePartyCreditorFinancialAccount/ram:ProprietaryID")
    form = re.compile(r"[A-Z]{2}[0-9]{2}[A-Za-z0-9 ]{8,40}")

    def read(self, source: Source, context: Context, group: Group) -> None:
        for at in (self.iban, self.other) if source.syntax is Syntax.CII else (self.ubl,):
            for element, _ in source.find(context, at):
                # The second of two different numbers stays unused: neither UBL nor the core has room for it.
                if self.name in group and text_of(element) != group.text(self.name):
                    continue
                value = CODE.read(source, element, ())
                if value is not None and self.name not in group:
                    group.add(self.name, value)

    def write(self, target: Target, context: Context, group: Group) -> None:
        for value in group.values_of(self.name):
            at = self.ubl
            if target.syntax is Syntax.CII:
                at = self.iban if self.form.fullmatch(value.text) else self.other
            ID.write(target, target.place(context, at), value)


_TAX_POINTS = {"5": "3", "29": "35", "72": "432"}
"""UNTDID 2475 in CII, UNTDID 2005 in UBL."""


@dataclass(frozen=True, slots=True)
class TaxPointCode:
    """BT-8, for which the two syntaxes have codes of different lists. The model has that of UBL."""

    term: Term

    def read(self, source: Source, context: Context, group: Group) -> None:
        unused = set(source.used)
        found = Group()
        self.term.read(source, context, found)
        for value in found.values_of(self.term.name):
            code = _TAX_POINTS.get(value.text) if source.syntax is Syntax.CII else value.text
            if code is not None and code in _TAX_POINTS.values():
                group.add(self.term.name, replace(value, text=code))
            else:
                source.used = unused

    def write(self, target: Target, context: Context, group: Group) -> None:
        codes = {ubl: cii if target.syntax is Syntax.CII else ubl for cii, ubl in _TAX_POINTS.items()}
        written = Group()
        for value in group.values_of(self.term.name):
            written.add(self.term.name, replace(value, text=codes[value.text]))
        self.term.write(target, context, written)


_MEANS = path("cac:PaymentMeans")
_DIRECT_DEBITS = frozenset({"49", "59"})


@dataclass(frozen=True, slots=True)
class InPaymentMeans:
    """A term of the whole invoice that UBL has inside the means of payment: in each of them, or in one."""

    term: Term
    within: Path
    each: bool = False
    mandate: bool = False
    """Whether it belongs to a direct debit."""

    def read(self, source: Source, context: Context, group: Group) -> None:
        self.term.read(source, context, group)

    def write(self, target: Target, context: Context, group: Group) -> None:
        elsewhere = self.term.places.to_write(target)
        if elsewhere is not None:
            self.term.write(target, context, group)
            return
        for value in group.values_of(self.term.name):
            means = target.all_at(context, _MEANS) or [self._unknown(target, context)]
            for one in means if self.each else [self._chosen(target, means)]:
                self.term.kind.write(target, target.place(one, self.within), value)

    @staticmethod
    def _unknown(target: Target, context: Context) -> Context:
        result = target.place(context, _MEANS)
        target.place(result, path("cbc:PaymentMeansCode")).text = UNDEFINED_MEANS
        return result

    def _chosen(self, target: Target, means: list[etree._Element]) -> etree._Element:
        if self.mandate:
            debited = [one for one in means if target.all_at(one, path("cac:PaymentMandate"))]
            codes = [one for one in means if one.findtext(qualified("cbc:PaymentMeansCode")) in _DIRECT_DEBITS]
            means = debited or codes or means
        return means[0]


UNDEFINED_MEANS = "1"
"""UNTDID 4461: the instrument is not defined. UBL needs a means of payment to have a payment reference."""


@dataclass(frozen=True, slots=True)
class TaxTotal:
    """BT-110 and BT-111: the tax in the invoice's currency and in the accounting currency."""

    own: str
    accounting: str
    currency: str
    accounting_currency: str

    def read(self, source: Source, context: Context, group: Group) -> None:
        at = _SUMMED_TAX if source.syntax is Syntax.CII else _TAX_TOTAL
        other = group.text(self.accounting_currency)
        for element, _ in source.find(context, at):
            currency = element.get("currencyID") or source.currency
            name = self.own if currency == source.currency else self.accounting if currency == other else None
            if name is None or name in group:
                continue
            value = AMOUNT.read(source, element, ()) if name == self.own else CODE.read(source, element, ())
            if value is not None:
                source.used_attributes.add((element, "currencyID"))
                group.add(name, value)

    def write(self, target: Target, context: Context, group: Group) -> None:
        currencies = {self.own: target.currency, self.accounting: group.text(self.accounting_currency)}
        for name, currency in currencies.items():
            for value in group.values_of(name):
                at = _SUMMED_TAX if target.syntax is Syntax.CII else _OWN_TAX_TOTAL
                element = target.place(context, at)
                element.text = value.text
                element.set("currencyID", currency)


_SUMMED_TAX = path(
    "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement"
    "/ram:SpecifiedTradeSettlementHeaderMonetarySummation/ram:TaxTotalAmount"
)
_TAX_TOTAL = path("cac:TaxTotal/cbc:TaxAmount")
_OWN_TAX_TOTAL = path("cac:TaxTotal+/cbc:TaxAmount")


@dataclass(frozen=True, slots=True)
class BaseQuantity:
    """BT-149, with the net price, the gross price or both in CII. Two different ones are no term of the standard."""

    name: str
    ubl = path("cac:Price/cbc:BaseQuantity")
    net = path("ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:BasisQuantity")
    gross = path("ram:SpecifiedLineTradeAgreement/ram:GrossPriceProductTradePrice/ram:BasisQuantity")
    gross_price: str = "BT-148"

    def read(self, source: Source, context: Context, group: Group) -> None:
        paths = (self.net, self.gross) if source.syntax is Syntax.CII else (self.ubl,)
        for at in paths:
            for element, _ in source.find(context, at):
                stated = group.value(self.name)
                if stated is not None and not _same_quantity(element, stated):
                    continue
                value = CODE.read(source, element, ("unitCode",))
                if value is not None and stated is None:
                    group.add(self.name, value)

    def write(self, target: Target, context: Context, group: Group) -> None:
        for value in group.values_of(self.name):
            paths = [self.ubl]
            if target.syntax is Syntax.CII:
                paths = [self.net, self.gross] if self.gross_price in group else [self.net]
            for at in paths:
                CODE.write(target, target.place(context, at), value)


def _same_quantity(element: etree._Element, stated: Value) -> bool:
    unit = stated.attribute("unitCode")
    text = raw_text(element).strip()
    return (element.get("unitCode") or unit) == unit and (text == stated.text or _number(text) == _number(stated.text))


_NUMBER = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*?)0*)?")


def _number(text: str) -> tuple[str, str] | str:
    """A positive number without meaningless zeros, for comparison."""
    found = _NUMBER.fullmatch(text)
    return (found[1], found[2] or "") if found and not text.startswith("-") else text
