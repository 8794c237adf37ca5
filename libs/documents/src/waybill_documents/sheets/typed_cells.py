"""What a cell contains: a text, or a value that has a type of its own and is never read through a locale."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import ValueType
from waybill_documents.office.excel import shown
from waybill_documents.values import Scalar

_NOT_TYPED = (str, type(None))


def is_typed(cell: Any) -> bool:
    """Whether the cell is a number, a date, a time or a truth value."""
    return not isinstance(cell, _NOT_TYPED)


def printed(cell: Any, locale: LocaleRules) -> str:
    """The text of a cell as the document would print it, so that labels, patterns and checks speak one language.

    Numbers are not grouped: an article number is a number for Excel, too.
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, date):  # a moment is a date, too
        return locale.dates[0].write(cell, locale.month_names)
    number = _number(cell)
    return shown(cell) if number is None else f"{number:f}".replace(".", locale.decimal)


def value_of(cell: Any, type: ValueType) -> Scalar:  # noqa: A002 - the mapping's word
    """The value of a typed cell in a field or a column of this type; None if it has none."""
    if type == "date":
        return cell.date() if isinstance(cell, datetime) else cell if isinstance(cell, date) else None
    if type in ("decimal", "integer"):
        number = _number(cell)
        if number is None or (type == "integer" and number != number.to_integral_value()):
            return None
        return int(number) if type == "integer" else number
    plain = _day(cell) if isinstance(cell, datetime) else shown(cell)
    return "".join(sign for sign in plain if sign in "0123456789") if type == "digits" else plain


def _day(moment: datetime) -> str:
    """A moment as text; Excel has no dates without a time, so midnight means a date."""
    return shown(moment.date() if moment.time() == datetime.min.time() else moment)


def _number(cell: Any) -> Decimal | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    number = Decimal(shown(cell))
    return number if number.is_finite() else None
