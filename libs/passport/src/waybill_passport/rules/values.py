"""Values while rules are evaluated, and how they come out of facts and go into a payload.

A Bool is a bool, an Int an int, a Text a str, a Date its ISO text (which sorts like the date), a Dec or Qty a scaled
integer, an Opt None or the value, a List a list, a Map a dict in the order of its keys, and a Record a dict. Types are
known beforehand, so values carry none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any

from waybill_passport.rules import limits
from waybill_passport.rules.mistakes import FACT_TYPE_MISMATCH, NUMBER_TOO_LARGE, UNIT_MISMATCH, VALUE_TOO_LARGE
from waybill_passport.rules.numbers import divided, fraction, written
from waybill_passport.rules.types import (
    BOOL,
    DATE,
    INT,
    TEXT,
    DecimalType,
    ListType,
    MapType,
    OptionType,
    QuantityType,
    RecordType,
    RuleType,
)
from waybill_passport.rules.units import conversion, convertible, unit_in_document

Value = Any
"""What the table in this module's first lines says. Its type is the rule language's, not Python's."""
Json = Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SHOWN = 512
"""Characters of JSON up to which the derivation shows a value; of longer ones it has the hash."""


class FactMisfit(Exception):
    """A fact's value is not what the rules say it is."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(code, message)


def day(text: str) -> bool:
    """Whether a text is a day of the calendar, such as 2027-02-18."""
    if not _DAY.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def cells(payload: Json) -> int:
    """How large a fact is: one for each value, and one for every 16 characters. Refuses what is not JSON."""
    found = 0
    waiting = [(payload, 1)]
    while waiting:
        value, depth = waiting.pop()
        found += 1
        kind = type(value)
        if kind is str:
            found += len(value) // 16
        elif value is None or kind is bool:
            continue
        elif kind is int or kind is Decimal:
            if not _small(value):
                raise FactMisfit(NUMBER_TOO_LARGE, "A number in the fact has too many digits.")
        elif depth > limits.FACT_NESTING:
            raise FactMisfit(VALUE_TOO_LARGE, f"The fact is nested more than {limits.FACT_NESTING} levels deep.")
        elif kind is dict:
            if any(type(key) is not str for key in value):
                raise FactMisfit(FACT_TYPE_MISMATCH, "A key in the fact is no text.")
            waiting += [(each, depth + 1) for each in value.values()]
        elif kind is list:
            waiting += [(each, depth + 1) for each in value]
        else:
            raise FactMisfit(FACT_TYPE_MISMATCH, f"The fact holds a {kind.__name__}, which is not exact JSON.")
    return found


def _small(number: int | Decimal) -> bool:
    if isinstance(number, int):
        return number.bit_length() <= 200
    return number.is_finite() and len(str(number)) <= 120


def weight(value: Value, most: int) -> int:
    """How many values there are in a value, and how long its texts are: what comparing or writing it costs.

    Parts that are shared count as often as they occur, so there can be very many: counting stops above `most`.
    """
    found = 0
    waiting = [value]
    while waiting and found <= most:
        each = waiting.pop()
        found += 1
        if isinstance(each, str):
            found += len(each) // 64
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
    return found


def decode(of: RuleType, value: Json) -> Value:
    """A value of a fact as a value of this type, or a misfit. Numbers are rounded to the type's decimal places."""
    match of:
        case OptionType():
            return None if value is None else decode(of.of, value)
        case ListType() if isinstance(value, list) and len(value) <= limits.ITEMS:
            return [decode(of.of, each) for each in value]
        case MapType() if isinstance(value, dict) and len(value) <= limits.ITEMS:
            return {decode(TEXT, key): decode(of.of, value[key]) for key in sorted(value)}
        case RecordType() if isinstance(value, dict):
            return value if of.fields is None else _record(of.fields, value)
        case DecimalType():
            return _bounded(of, _rounded(of, value, 1, 1, of.scale))
        case QuantityType():
            return _quantity(of, value)
    if of == BOOL and isinstance(value, bool):
        return value
    if of == DATE and isinstance(value, str) and day(value):
        return value
    if of == TEXT and isinstance(value, str):
        if len(value) > limits.TEXT:
            raise FactMisfit(VALUE_TOO_LARGE, f"A text in the fact has more than {limits.TEXT} characters.")
        if not _UNSTORABLE.search(value):
            return value
    if of == INT and not isinstance(value, str) and (number := fraction(value)) and number[0] % number[1] == 0:
        return _bounded(of, number[0] // number[1])
    raise _misfit(of, value)


def _record(fields: tuple[tuple[str, RuleType], ...], value: dict[str, Json]) -> Value:
    found = {}
    for name, each in fields:
        if name not in value and not isinstance(each, OptionType):
            raise FactMisfit(FACT_TYPE_MISMATCH, f"The fact has no '{name}', which is no Opt.")
        try:
            found[name] = decode(each, value.get(name))
        except FactMisfit as misfit:
            raise FactMisfit(misfit.code, f"In '{name}': {misfit.message}") from None
    return found


def _quantity(of: QuantityType, value: Json) -> Value:
    """A plain number is meant in the type's unit; an object with value and unit is converted."""
    unit: str | None = of.unit
    if isinstance(value, dict) and isinstance(value.get("unit"), str) and "value" in value:
        unit = unit_in_document(value["unit"])
        value = value["value"]
    factors = conversion(unit, of.unit) if unit else None
    if factors is None:
        fits = ", ".join([of.unit, *convertible(of.unit)])
        raise FactMisfit(UNIT_MISMATCH, f"The fact's unit does not convert into {of.unit}. Units that do: {fits}.")
    return _bounded(of, _rounded(of, value, *factors, limits.QUANTITY_SCALE))


def _rounded(of: RuleType, value: Json, numerator: int, denominator: int, scale: int) -> int:
    number = fraction(value)
    if number is None:
        raise _misfit(of, value)
    return divided(number[0] * numerator * int(10**scale), number[1] * denominator)


def _bounded(of: RuleType, number: int) -> int:
    if not in_bounds(of, number):
        raise FactMisfit(NUMBER_TOO_LARGE, f"The fact's number is too large for {of}.")
    return number


def in_bounds(of: RuleType, number: int) -> bool:
    """Whether a number of this type may be so large."""
    return abs(number) <= limits.INTEGER if of == INT else abs(number) < _TOO_LARGE


_TOO_LARGE = 10**limits.DIGITS


def _misfit(of: RuleType, value: Json) -> FactMisfit:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    kind = kinds.get(type(value), "a number")
    return FactMisfit(FACT_TYPE_MISMATCH, f"The rules expect {of}, and the fact has {kind} that is none.")


@lru_cache(maxsize=1024)
def encoder(of: RuleType) -> Callable[[Value], Json]:
    """How values of this type are written into a payload. The JSON of a fact stays as it is."""
    match of:
        case DecimalType():
            return lambda value: written(value, of.scale)
        case QuantityType():
            return lambda value: {"unit": of.unit, "value": written(value, limits.QUANTITY_SCALE)}
        case OptionType():
            inner = encoder(of.of)
            return lambda value: None if value is None else inner(value)
        case ListType():
            each_item = encoder(of.of)
            return lambda value: [each_item(each) for each in value]
        case MapType():
            each_value = encoder(of.of)
            return lambda value: {key: each_value(each) for key, each in value.items()}
        case RecordType(fields) if fields is not None:
            parts = [(name, encoder(each)) for name, each in fields]
            return lambda value: {name: part(value[name]) for name, part in parts}
        case _:
            return lambda value: value


def summary(value: Json) -> tuple[Json, int]:
    """What the derivation shows of a value, and the size of it. Of a long value it shows the SHA-256 of its JSON."""
    if value is None or isinstance(value, int) or (isinstance(value, str) and len(value) <= _SHOWN):
        return value, 1
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    if len(text) <= _SHOWN:
        return json.loads(text), len(text) // 16
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"characters": len(text), "sha256": digest}, len(text) // 16
