"""Generated values for properties: the same for the same seed everywhere, because they come from SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date, timedelta

from waybill_passport.rules.limits import QUANTITY_SCALE
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
from waybill_passport.rules.values import Value

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.:/äé漢"
_FIRST_DAY, _DAYS = date(2000, 1, 1), 36_524
_LONGEST = 5
_DRAWS = 300


class Draws:
    """Numbers that look random and depend on nothing but the seed, the name and the case."""

    def __init__(self, seed: int, name: str, case: int) -> None:
        self._key = hashlib.sha256(f"{seed}/{case}/{name}".encode()).digest()
        self.count = 0

    def length(self, most: int) -> int:
        """How long a list or text is. After many draws it is empty, or lists of lists of lists would never end."""
        return 0 if self.count > _DRAWS else self.number(0, most)

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        self.count += 1
        digest = hashlib.sha256(self._key + self.count.to_bytes(8, "big")).digest()
        return low + int.from_bytes(digest, "big") % (high - low + 1)


def usual_bounds(of: RuleType) -> tuple[Value, Value]:
    """Between which values numbers and days are generated if the rules do not say."""
    if of == INT:
        return -1000, 1000
    if of == DATE:
        return _day(0), _day(_DAYS)
    scale = of.scale if isinstance(of, DecimalType) else QUANTITY_SCALE
    return -(10 ** (scale + 4)), int(10 ** (scale + 4))


def bounded(of: RuleType) -> bool:
    """Whether values of the type can be generated `from` one `to` another."""
    return of in (INT, DATE) or isinstance(of, DecimalType | QuantityType)


def generate(of: RuleType, draws: Draws, low: Value = None, high: Value = None) -> Value:
    """A value of the type. Small and extreme ones are more frequent than others."""
    if bounded(of):
        first, last = usual_bounds(of)
        low, high = (first, last) if low is None or high is None else (low, high)
        return _day(_number(draws, _days(low), _days(high))) if of == DATE else _number(draws, low, high)
    match of:
        case OptionType():
            return None if draws.number(0, 3) == 0 else generate(of.of, draws)
        case ListType():
            return [generate(of.of, draws) for _ in range(draws.length(_LONGEST))]
        case MapType():
            keys = {generate(TEXT, draws) for _ in range(draws.length(_LONGEST))}
            return {key: generate(of.of, draws) for key in sorted(keys)}
        case RecordType():
            return {name: generate(each, draws) for name, each in of.fields or ()}
    if of == BOOL:
        return draws.number(0, 1) == 1
    return "".join(_LETTERS[draws.number(0, len(_LETTERS) - 1)] for _ in range(draws.length(12)))


def _number(draws: Draws, low: int, high: int) -> int:
    if draws.number(0, 4) == 0:
        extremes = [each for each in (0, 1, -1, low, high) if low <= each <= high]
        return extremes[draws.number(0, len(extremes) - 1)]
    return draws.number(low, high)


def _day(number: int) -> str:
    return (_FIRST_DAY + timedelta(days=number)).isoformat()


def _days(day: str) -> int:
    return (date.fromisoformat(day) - _FIRST_DAY).days


def simpler(of: RuleType, value: Value, low: Value = None, high: Value = None) -> Iterator[Value]:
    """Values that are simpler than this one, the simplest first."""
    if bounded(of):
        first, last = usual_bounds(of)
        low, high = (first, last) if low is None or high is None else (low, high)
        if of == DATE:
            yield from (_day(each) for each in _smaller(_days(value), _days(low), _days(high)))
        else:
            yield from _smaller(value, low, high)
        return
    match of:
        case OptionType() if value is not None:
            yield None
            yield from simpler(of.of, value)
        case ListType():
            yield from _shorter(value)
            for index, each in enumerate(value):
                yield from ([*value[:index], other, *value[index + 1 :]] for other in simpler(of.of, each))
        case MapType():
            yield from (dict(part) for part in _shorter(list(value.items())))
            for key, each in value.items():
                yield from ({**value, key: other} for other in simpler(of.of, each))
        case RecordType():
            for name, part in of.fields or ():
                yield from ({**value, name: other} for other in simpler(part, value[name]))
    if of == BOOL and value:
        yield False
    if of == TEXT:
        yield from ("".join(part) for part in _shorter(list(value)))
        yield from (value[:index] + "a" + value[index + 1 :] for index, each in enumerate(value) if each != "a")


def _smaller(value: int, low: int, high: int) -> Iterator[int]:
    """Towards zero, or towards the bound that is nearest to zero."""
    goal = min(max(0, low), high)
    gap = value - goal
    while gap != 0:
        yield value - gap
        gap = gap // 2 if gap > 0 else -(-gap // 2)


def _shorter(items: list[Value]) -> Iterator[list[Value]]:
    if items:
        yield []
    if len(items) > 3:
        yield items[: len(items) // 2]
        yield items[len(items) // 2 :]
    if len(items) > 1:
        yield from (items[:index] + items[index + 1 :] for index in range(len(items)))
