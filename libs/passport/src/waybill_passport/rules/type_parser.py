"""Reads types: `Dec(2)`, `Opt(Text)`, `Record(name: Text, mass: Qty(kg))`."""

from __future__ import annotations

from waybill_passport.rules import limits
from waybill_passport.rules.lexeme_stream import LexemeStream
from waybill_passport.rules.mistakes import did_you_mean
from waybill_passport.rules.types import (
    OPEN_RECORD,
    PRIMITIVES,
    TYPE_NAMES,
    DecimalType,
    ListType,
    MapType,
    OptionType,
    QuantityType,
    RecordType,
    RuleType,
    too_complex,
)
from waybill_passport.rules.units import UNITS


def read_type(stream: LexemeStream) -> RuleType:
    """The type that comes next."""
    start = stream.peek()
    read = _type(stream, 1)
    if too_complex(read):
        raise stream.mistake(f"A type has at most {limits.TYPE_PARTS} parts.", start)
    return read


def _type(stream: LexemeStream, depth: int) -> RuleType:
    start = stream.peek()
    if depth > limits.TYPE_NESTING:
        raise stream.mistake(f"A type is nested at most {limits.TYPE_NESTING} levels deep.")
    if start.kind != "name" or start.text not in TYPE_NAMES:
        hint = did_you_mean(start.text, TYPE_NAMES) if start.kind == "name" else ""
        raise stream.mistake(f"Here should be a type ({', '.join(TYPE_NAMES)}), not {start}.{hint}")
    name = stream.next().text
    if name in PRIMITIVES:
        return PRIMITIVES[name]
    if name == "Record" and not stream.at_sign("("):
        return OPEN_RECORD
    stream.expect("(", f"after {name}")
    read = _record(stream, depth) if name == "Record" else _with_argument(stream, name, depth)
    stream.expect(")", f"at the end of {name}(…)")
    return read


def _with_argument(stream: LexemeStream, name: str, depth: int) -> RuleType:
    if name == "Dec":
        return DecimalType(stream.number("the number of decimal places", limits.SCALE))
    if name == "Qty":
        return QuantityType(read_unit(stream))
    if name == "Map":
        stream.expect_word("Text", "as the type of a map's keys")
        stream.expect(",", "after Text")
        return MapType(_type(stream, depth + 1))
    inside = stream.peek()
    of = _type(stream, depth + 1)
    if name == "List":
        return ListType(of)
    if isinstance(of, OptionType):
        raise stream.mistake("An Opt cannot hold another Opt. One is enough.", inside)
    return OptionType(of)


def _record(stream: LexemeStream, depth: int) -> RecordType:
    fields: list[tuple[str, RuleType]] = []
    while True:
        start = stream.peek()
        name = stream.name("the name of a record's field")
        if name in dict(fields):
            raise stream.mistake(f"This record already has a field '{name}'.", start)
        stream.expect(":", "between name and type")
        fields.append((name, _type(stream, depth + 1)))
        if not stream.accept(","):
            return RecordType(tuple(fields))


def read_unit(stream: LexemeStream) -> str:
    lexeme = stream.peek()
    if lexeme.kind != "name" or lexeme.text not in UNITS:
        hint = did_you_mean(lexeme.text, UNITS) if lexeme.kind == "name" else ""
        raise stream.mistake(f"Here should be a unit ({', '.join(UNITS)}), not {lexeme}.{hint}")
    return stream.next().text
