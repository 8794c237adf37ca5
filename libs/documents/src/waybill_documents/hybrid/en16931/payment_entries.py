"""Entries for payment and taxes, which the two syntaxes write in different ways."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lxml import etree

from waybill_documents.hybrid.en16931.entries import Context, Term
from waybill_documents.hybrid.en16931.kinds import AMOUNT, CODE, ID
from waybill_documents.hybrid.en16931.model import TermGroup
from waybill_documents.hybrid.en16931.paths import Path, path
from waybill_documents.hybrid.en16931.source import TermSource
from waybill_documents.hybrid.en16931.syntaxes import Syntax, qualified, text_of
from waybill_documents.hybrid.en16931.target import TermTarget


@dataclass(frozen=True, slots=True)
class PaymentAccount:
    """BT-84: an IBAN or another account number, which CII keeps apart."""

    name: str
    ubl = path("cac:PayeeFinancialAccount/cbc:ID")
    iban = path("ram:PayeePartyCreditorFinancialAccount/ram:IBANID")
    other = path("ram:PayeePartyCreditorFinancialAccount/ram:ProprietaryID")
    form = re.compile(r"[A-Z]{2}[0-9]{2}[A-Za-z0-9 ]{8,40}")

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        for at in (self.iban, self.other) if source.syntax is Syntax.CII else (self.ubl,):
            for element, _ in source.find(context, at):
                # The second of two different numbers stays unused: neither UBL nor the core has room for it.
                if self.name in group and text_of(element) != group.text(self.name):
                    continue
                value = CODE.read(source, element, ())
                if value is not None and self.name not in group:
                    group.add(self.name, value)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
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

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        unused = set(source.used)
        found = TermGroup()
        self.term.read(source, context, found)
        for value in found.values_of(self.term.name):
            code = _TAX_POINTS.get(value.text) if source.syntax is Syntax.CII else value.text
            if code is not None and code in _TAX_POINTS.values():
                group.add(self.term.name, replace(value, text=code))
            else:
                source.used = unused

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        codes = {ubl: cii if target.syntax is Syntax.CII else ubl for cii, ubl in _TAX_POINTS.items()}
        written = TermGroup()
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

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
        self.term.read(source, context, group)

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
        elsewhere = self.term.places.to_write(target)
        if elsewhere is not None:
            self.term.write(target, context, group)
            return
        for value in group.values_of(self.term.name):
            means = target.all_at(context, _MEANS) or [self._unknown(target, context)]
            for one in means if self.each else [self._chosen(target, means)]:
                self.term.kind.write(target, target.place(one, self.within), value)

    @staticmethod
    def _unknown(target: TermTarget, context: Context) -> Context:
        result = target.place(context, _MEANS)
        target.place(result, path("cbc:PaymentMeansCode")).text = UNDEFINED_MEANS
        return result

    def _chosen(self, target: TermTarget, means: list[etree._Element]) -> etree._Element:
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

    def read(self, source: TermSource, context: Context, group: TermGroup) -> None:
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

    def write(self, target: TermTarget, context: Context, group: TermGroup) -> None:
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
