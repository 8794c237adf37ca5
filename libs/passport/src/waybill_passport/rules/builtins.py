"""The built-in functions: what each takes, and where its code is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from waybill_passport.rules import fact_functions, list_functions, number_functions, value_functions
from waybill_passport.rules.arguments import Arguments
from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.syntax import Application

if TYPE_CHECKING:
    from waybill_passport.rules.checker import Checker


class Builtin(NamedTuple):
    """A function of the language."""

    signature: str
    least: int
    most: int
    make: Callable[[Arguments], CheckedTerm]

    def check(self, checker: Checker, call: Application) -> CheckedTerm:
        return self.make(Arguments(checker, call, self.signature, self.least, self.most))


_ALL = (
    Builtin("field(path) -> the type of that field", 1, 1, fact_functions.field),
    Builtin("getFact(Text, Text) or getFact(Text, Text, T) -> Opt(T)", 2, 3, fact_functions.get_fact),
    Builtin(
        "getFactsByPrefix(Text, Text) or getFactsByPrefix(Text, Text, T) -> List(T)", 2, 3, fact_functions.by_prefix
    ),
    Builtin("recordGet(Record, Text, T) -> Opt(T)", 2, 3, fact_functions.record_get),
    Builtin("emitCompliance(rule: Text, status: Text, evidence: Text) -> Bool", 3, 3, fact_functions.emit_compliance),
    Builtin("some(T) -> Opt(T)", 1, 1, value_functions.some),
    Builtin("none(T) -> Opt(T)", 1, 1, value_functions.none),
    Builtin("isSome(Opt(T)) -> Bool", 1, 1, value_functions.is_some),
    Builtin("unwrapOr(Opt(T), T) -> T", 2, 2, value_functions.unwrap_or),
    Builtin('requireSome(Opt(T), "CODE", "why it is needed") -> T', 3, 3, value_functions.require_some),
    Builtin('date("2027-02-18") -> Date', 1, 1, value_functions.date),
    Builtin("toText(Bool, Int, Text, Date, Dec or Qty) -> Text", 1, 1, value_functions.to_text),
    Builtin("length(Text, List(T) or Map(Text, T)) -> Int", 1, 1, value_functions.length),
    Builtin("mapGet(Map(Text, T), Text) -> Opt(T)", 2, 2, value_functions.map_get),
    Builtin("mapKeys(Map(Text, T)) -> List(Text)", 1, 1, value_functions.map_keys),
    Builtin("emptyMap(T) -> Map(Text, T)", 1, 1, value_functions.empty_map),
    Builtin("toDec(places, Int, Dec or Qty) -> Dec(places)", 2, 2, number_functions.to_dec),
    Builtin("toQty(unit, Int or Dec) -> Qty(unit)", 2, 2, number_functions.to_qty),
    Builtin("convert(unit, other unit, Qty(unit)) -> Qty(other unit)", 3, 3, number_functions.convert),
    Builtin("sumDec(places, List(Dec(n))) -> Dec(places)", 2, 2, number_functions.sum_dec),
    Builtin("sumQty(unit, List(Qty(unit))) -> Qty(unit)", 2, 2, number_functions.sum_qty),
    Builtin("emptyList(T) -> List(T)", 1, 1, list_functions.empty_list),
    Builtin("map(List(A), x -> B) -> List(B)", 2, 2, list_functions.map_items),
    Builtin("filter(List(T), x -> Bool) -> List(T)", 2, 2, list_functions.filter_items),
    Builtin("fold(List(A), B, (b, a) -> B) -> B", 3, 3, list_functions.fold),
)
BUILTINS = {each.signature.partition("(")[0]: each for each in _ALL}
