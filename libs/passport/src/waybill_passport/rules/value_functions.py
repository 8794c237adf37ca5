"""Functions on Opts, texts, dates and maps."""

from __future__ import annotations

from waybill_passport.rules.arguments import Arguments
from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.limits import QUANTITY_SCALE
from waybill_passport.rules.machine import Machine, Pair
from waybill_passport.rules.mistakes import MISSING_FACT
from waybill_passport.rules.numbers import written
from waybill_passport.rules.types import (
    BOOL,
    DATE,
    INT,
    TEXT,
    DecimalType,
    ListType,
    MapType,
    OptionType,
    Primitive,
    QuantityType,
    RuleType,
    optional,
)
from waybill_passport.rules.values import Value, day, encoder


def some(arguments: Arguments) -> CheckedTerm:
    inner = arguments.any(0)
    if isinstance(inner.type, OptionType):
        raise arguments.mistake("An Opt cannot hold another Opt.", arguments.place(0))
    return CheckedTerm(OptionType(inner.type), inner.run)


def none(arguments: Arguments) -> CheckedTerm:
    return _fixed(arguments, optional(arguments.type(0)), None)


def empty_map(arguments: Arguments) -> CheckedTerm:
    return _fixed(arguments, MapType(arguments.type(0)), {})


def date(arguments: Arguments) -> CheckedTerm:
    text = arguments.text(0, "a day")
    if not day(text):
        raise arguments.mistake("This is no day of the calendar.", arguments.place(0))
    return _fixed(arguments, DATE, text)


def _fixed(arguments: Arguments, of: RuleType, value: Value) -> CheckedTerm:
    encode, label, at = encoder(of), str(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        return value, machine.constant(label, encode, value, at)

    return CheckedTerm(of, run)


def is_some(arguments: Arguments) -> CheckedTerm:
    option, _ = arguments.option_of_any(0)
    at = arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = option.run(machine)
        return value is not None, machine.operation("isSome", (node,), bool, value is not None, at)

    return CheckedTerm(BOOL, run)


def unwrap_or(arguments: Arguments) -> CheckedTerm:
    """The default is evaluated only if it is needed."""
    option, of = arguments.option_of_any(0)
    default = arguments.of(1, of)
    encode, at = encoder(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = option.run(machine)
        if value is not None:
            return value, machine.operation("unwrapOr", (node,), encode, value, at)
        value, other = default.run(machine)
        return value, machine.operation("unwrapOr", (node, other), encode, value, at)

    return CheckedTerm(of, run)


def require_some(arguments: Arguments) -> CheckedTerm:
    option, of = arguments.option_of_any(0)
    reason, message = arguments.text(1, "a code"), arguments.text(2, "a sentence")
    encode, at = encoder(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = option.run(machine)
        if value is None:
            raise machine.failure(MISSING_FACT, message, at, reason)
        return value, machine.operation(f"requireSome {reason}", (node,), encode, value, at)

    return CheckedTerm(of, run)


def to_text(arguments: Arguments) -> CheckedTerm:
    inner = arguments.any(0)
    of, at = inner.type, arguments.at
    if not isinstance(of, Primitive | DecimalType | QuantityType):
        raise arguments.mistake(f"{of} has no text.", arguments.place(0))

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = inner.run(machine)
        text = machine.text(_shown(of, value), at)
        return text, machine.operation("toText", (node,), str, text, at)

    return CheckedTerm(TEXT, run)


def _shown(of: RuleType, value: Value) -> str:
    if of == BOOL:
        return "true" if value else "false"
    if isinstance(of, DecimalType):
        return written(value, of.scale)
    if isinstance(of, QuantityType):
        return f"{written(value, QUANTITY_SCALE)} {of.unit}"
    return str(value)


def length(arguments: Arguments) -> CheckedTerm:
    inner = arguments.any(0)
    at = arguments.at
    if inner.type != TEXT and not isinstance(inner.type, ListType | MapType):
        raise arguments.mistake(f"{inner.type} has no length.", arguments.place(0))

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = inner.run(machine)
        return len(value), machine.operation("length", (node,), int, len(value), at)

    return CheckedTerm(INT, run)


def _map(arguments: Arguments) -> tuple[CheckedTerm, RuleType]:
    code = arguments.any(0)
    if not isinstance(code.type, MapType):
        raise arguments.mistake(f"Argument 1 must be a Map, but this is {code.type}.", arguments.place(0))
    return code, code.type.of


def map_get(arguments: Arguments) -> CheckedTerm:
    mapping, of = _map(arguments)
    key = arguments.of(1, TEXT)
    encode, at = encoder(optional(of)), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = mapping.run(machine)
        name, name_node = key.run(machine)
        found = values.get(name)
        return found, machine.operation("mapGet", (node, name_node), encode, found, at)

    return CheckedTerm(optional(of), run)


def map_keys(arguments: Arguments) -> CheckedTerm:
    mapping, _ = _map(arguments)
    at = arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = mapping.run(machine)
        machine.grow(len(values), at)
        machine.steps(len(values), at)
        return list(values), machine.operation("mapKeys", (node,), list, list(values), at)

    return CheckedTerm(ListType(TEXT), run)
