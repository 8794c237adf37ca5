"""Reads what a person typed in the document's own spelling, such as `37.050,00` and `7 Agustus 2025`.

The spelling of programs is accepted too, unless it means something else in the document's locale: `1234.50` is always
a number, but `12.500` is twelve and a half thousand where the point separates groups.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal

from waybill_documents.corrections.targets import Target
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import ColumnRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.precision import too_precise
from waybill_documents.text_lines import fold
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Scalar

LONGEST_TYPED = 10_000

_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,30}\.(?P<fraction>[0-9]{1,10})", re.ASCII)
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters, lone surrogates and noncharacters: XML cannot hold most of them."""


class TypedTextRefused(Exception):
    """The typed text is refused. The finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_typed(target: Target, text: str, locale: LocaleRules) -> Scalar:
    """The value of a typed text. An empty text is the rule's default, or None. Raises `TypedTextRefused`."""
    if len(text) > LONGEST_TYPED:
        raise _refused(target, text, DocumentMessage("text.too_long", most=LONGEST_TYPED))
    if _UNWRITABLE.search(text):
        raise _refused(target, text, DocumentMessage("text.unwritable"))
    rule = target.rule
    type_ = rule.type if rule is not None else "text"
    plain = unicodedata.normalize("NFC", " ".join(text.split()))
    if not plain or (isinstance(rule, ColumnRule) and _stands_for_nothing(plain, rule, locale)):
        default = rule.default if rule is not None else None
        return read(default, type_, locale) if default is not None else None
    try:
        value = read(plain, type_, locale)
    except Unreadable as error:
        value = _in_plain_form(plain, type_, locale)
        if value is None:
            raise _refused(target, plain, error.says) from None
    if rule is not None and (why := too_precise(value, rule.decimals, plain)):
        raise _refused(target, plain, why)
    return value


def _stands_for_nothing(text: str, rule: ColumnRule, locale: LocaleRules) -> bool:
    """Whether the text is what the document prints for “nothing”, such as a dash, with or without a currency sign."""
    sign, _, rest = text.partition(" ")
    return text in rule.empty or (rest in rule.empty and fold(sign) in {fold(each) for each in locale.currencies})


def _in_plain_form(text: str, type_: str, locale: LocaleRules) -> Scalar:
    """The value of a program's spelling, if it cannot mean anything else."""
    if type_ == "date" and _ISO_DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    number = _PLAIN_NUMBER.fullmatch(text) if type_ == "decimal" else None
    if number is None or ("." in locale.groups and len(number["fraction"]) == 3):
        return None
    return Decimal(text)


def _refused(target: Target, text: str, why: DocumentMessage) -> TypedTextRefused:
    message = DocumentMessage("correction.refused", name=target.path, line=target.line, why=why, raw=text[:60])
    return TypedTextRefused(Finding(FaultCode.BAD_VALUE, message, target.path, target.where))
