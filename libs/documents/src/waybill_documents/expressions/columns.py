"""Functions on columns. A column is the list of its values in all rows; empty values do not count."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from waybill_documents.expressions import numbers
from waybill_documents.expressions.text_functions import as_number, empty


def _filled(column: Any) -> list[Any]:
    return [value for value in column if not empty(value)] if isinstance(column, list) else []


def total(column: Any) -> Decimal | None:
    """The sum."""
    return numbers.total(column) if isinstance(column, list) else None


def shares(whole: Any, column: Any, places: Any = 2) -> list[Decimal | None]:
    """A number distributed by the weights of a column, rounded so that the shares add up to it.

    Each share is the increase of the rounded cumulative share. It therefore differs from its exact size by at most one
    last digit, and if the number is not larger than the sum, no share is larger than its weight.
    """
    weights = column if isinstance(column, list) else []
    weight_of_all = numbers.total(weights)
    dealt: list[Decimal | None] = []
    so_far, given = Decimal(0), numbers.rounded(0, places)
    for weight in weights:
        if weight is None:
            dealt.append(None)
            continue
        so_far = numbers.add(so_far, weight) or Decimal(0)
        until_here = numbers.rounded(numbers.divide(numbers.multiply(whole, so_far), weight_of_all), places)
        dealt.append(numbers.subtract(until_here, given))
        given = until_here
    return dealt


def count(rows: Any) -> int | None:
    """Rows of a table, or filled cells of a column."""
    return len(_filled(rows)) if isinstance(rows, list) else None


def first(column: Any) -> Any:
    """The first value."""
    filled = _filled(column)
    return filled[0] if filled else None


def last(column: Any) -> Any:
    """The last value."""
    filled = _filled(column)
    return filled[-1] if filled else None


def running(column: Any) -> bool | None:
    """Whether the numbers are 1, 2, 3, ... without gaps. True without rows, false if no row has a number."""
    if not isinstance(column, list):
        return None
    filled = _filled(column)
    if not filled:
        return not column
    return all(as_number(value) == expected for expected, value in enumerate(filled, start=1))


def unique(column: Any) -> bool | None:
    """Whether no value occurs twice."""
    if not isinstance(column, list):
        return None
    filled = [value for value in column if not empty(value) and not isinstance(value, dict | list)]
    try:
        return len(set(filled)) == len(filled)
    except TypeError:  # a signalling NaN, which nothing can be compared with
        return None


def smallest(*values: Any) -> Any:
    """The smallest of several values or of a column; empty when they cannot be compared."""
    known = _comparable(values)
    return min(known) if known else None


def largest(*values: Any) -> Any:
    """The largest of several values or of a column; empty when they cannot be compared."""
    known = _comparable(values)
    return max(known) if known else None


def _comparable(values: Iterable[Any]) -> list[Any] | None:
    known: list[Any] = []
    for value in values:
        known += _filled(value) if isinstance(value, list) else [] if empty(value) else [value]
    plain = [numbers.number(value) for value in known]
    if all(value is not None for value in plain):
        return plain
    for kind in (date, str):
        if all(type(value) is kind for value in known):
            return known
    return None
