"""Checks types, units and names, and makes a function of each expression.

Checking and making are one pass, so that what is evaluated can never differ from what was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waybill_passport.rules.builtins import BUILTINS
from waybill_passport.rules.checked_term import CheckedField, CheckedTerm, Run
from waybill_passport.rules.limits import TYPE_NESTING, TYPE_PARTS
from waybill_passport.rules.machine import ASSERT, Machine, Pair
from waybill_passport.rules.mistakes import ASSERTION_FAILED, TYPE_ERROR, RuleMistake, did_you_mean
from waybill_passport.rules.operator_code import comparing, joining, logic, prefixed
from waybill_passport.rules.syntax import (
    Application,
    Argument,
    Block,
    BoolLiteral,
    Conditional,
    DecimalLiteral,
    FieldDeclaration,
    IntLiteral,
    Lambda,
    Let,
    ListLiteral,
    MapLiteral,
    Operations,
    Prefixed,
    RecordAccess,
    RecordLiteral,
    TextLiteral,
    TypeArgument,
    Variable,
)
from waybill_passport.rules.types import (
    BOOL,
    INT,
    TEXT,
    DecimalType,
    ListType,
    MapType,
    QuantityType,
    RecordType,
    RuleType,
    closed,
    too_complex,
)
from waybill_passport.rules.values import Value, encoder, in_bounds


class Checker:
    """Checks the expressions of one field or one test."""

    def __init__(self, source: str, fields: Mapping[str, RuleType]) -> None:
        self.source = source
        self.fields = fields
        self.slots = 0
        self._names: dict[str, tuple[int, RuleType]] = {}

    def mistake(self, message: str, at: int) -> RuleMistake:
        return RuleMistake(TYPE_ERROR, message, self.source, at)

    def bind(self, name: str, of: RuleType, at: int) -> int:
        """Give a name a place in the frame."""
        if name in self._names:
            raise self.mistake(f"There is already a value '{name}'. Give this one another name.", at)
        self._names[name] = (self.slots, of)
        self.slots += 1
        return self._names[name][0]

    def unbind(self, name: str) -> None:
        del self._names[name]

    def check(self, term: Argument) -> CheckedTerm:
        """The code of a term, whatever its type is."""
        code = self._check(term)
        if isinstance(term, ListLiteral | MapLiteral | RecordLiteral | Application) and too_complex(code.type):
            message = f"The type of this has more than {TYPE_PARTS} parts, or more than {TYPE_NESTING} levels."
            raise self.mistake(message, term.at)
        return code

    def _check(self, term: Argument) -> CheckedTerm:
        match term:
            case TextLiteral():
                return self._constant(TEXT, term.text, term.at)
            case BoolLiteral():
                return self._constant(BOOL, term.value, term.at)
            case IntLiteral():
                return self._constant(INT, term.value, term.at)
            case DecimalLiteral():
                return self._constant(DecimalType(term.scale), term.digits, term.at)
            case Variable():
                return self._variable(term)
            case Prefixed():
                return prefixed(self, term)
            case Operations():
                return self._operations(term)
            case Conditional():
                return self._conditional(term)
            case Block():
                return self._block(term)
            case Application():
                return self._application(term)
            case ListLiteral():
                return self._list(term)
            case MapLiteral():
                return self._map(term)
            case RecordLiteral():
                return self._record(term)
            case RecordAccess():
                return self._access(term)
            case Lambda():
                raise self.mistake("Only map, filter and fold take 'x -> …'.", term.at)
            case TypeArgument():
                raise self.mistake(f"Here should be a value, not the type {term.type}.", term.at)

    def expect(self, term: Argument, wanted: RuleType, what: str) -> CheckedTerm:
        """The code of a term that must have this type."""
        code = self.check(term)
        if code.type != wanted:
            message = f"{what} must be {wanted}, but this is {code.type}.{_way(code.type, wanted)}"
            raise self.mistake(message, term.at)
        return code

    def _constant(self, of: RuleType, value: Value, at: int) -> CheckedTerm:
        if isinstance(value, int) and not isinstance(value, bool) and not in_bounds(of, value):
            raise self.mistake(f"This number is too large for {of}.", at)
        encode, label = encoder(of), str(of)

        def run(machine: Machine) -> Pair:
            machine.step(at)
            return value, machine.constant(label, encode, value, at)

        return CheckedTerm(of, run, value if isinstance(value, str) else None)

    def _variable(self, term: Variable) -> CheckedTerm:
        known = self._names.get(term.name)
        if known is None:
            hint = did_you_mean(term.name, self._names)
            if not hint and term.name in BUILTINS:
                hint = f" '{term.name}' is a function: {BUILTINS[term.name].signature}."
            if not hint and any(path.split(".")[0] == term.name for path in self.fields):
                hint = ' Write field("…") to use the value of another field.'
            raise self.mistake(f"There is no value '{term.name}'.{hint}", term.at)
        slot, of = known
        at = term.at

        def run(machine: Machine) -> Pair:
            machine.step(at)
            pair = machine.frame[slot]
            machine.notice(pair[1])
            return pair

        return CheckedTerm(of, run)

    def _operations(self, term: Operations) -> CheckedTerm:
        sign = term.others[0][0]
        if sign in ("&&", "||"):
            return logic(self, term)
        return joining(self, term) if sign in "+-*/" else comparing(self, term)

    def _conditional(self, term: Conditional) -> CheckedTerm:
        condition = self.expect(term.condition, BOOL, "A condition").run
        then = self.check(term.then)
        otherwise = self.expect(term.otherwise, then.type, "The value after else")
        encode, at = encoder(then.type), term.at

        def run(machine: Machine) -> Pair:
            machine.step(at)
            holds, chosen_by = condition(machine)
            value, node = (then if holds else otherwise).run(machine)
            return value, machine.operation("if", (chosen_by, node), encode, value, at)

        return CheckedTerm(then.type, run)

    def _block(self, term: Block) -> CheckedTerm:
        steps: list[Run] = []
        names: list[str] = []
        for step in term.steps:
            if isinstance(step, Let):
                value = self.check(step.value)
                steps.append(_kept(value.run, self.bind(step.name, value.type, step.at)))
                names.append(step.name)
            else:
                condition = self.expect(step.condition, BOOL, "What is asserted")
                steps.append(_asserted(condition.run, step.reason, step.message, step.at))
        result = self.check(term.result)
        for name in names:
            self.unbind(name)

        def run(machine: Machine) -> Pair:
            for each in steps:
                each(machine)
            return result.run(machine)

        return CheckedTerm(result.type, run)

    def _application(self, term: Application) -> CheckedTerm:
        builtin = BUILTINS.get(term.function)
        if builtin is None:
            hint = did_you_mean(term.function, BUILTINS)
            raise self.mistake(f"There is no function '{term.function}'.{hint}", term.at)
        return builtin.check(self, term)

    def _list(self, term: ListLiteral) -> CheckedTerm:
        if not term.items:
            raise self.mistake("An empty list needs a type: emptyList(Int).", term.at)
        first = self.check(term.items[0])
        others = [self.expect(each, first.type, "Each item of the list") for each in term.items[1:]]
        runs = [each.run for each in (first, *others)]
        return _gathered("list", ListType(first.type), runs, list, term.at)

    def _map(self, term: MapLiteral) -> CheckedTerm:
        first = self.check(term.entries[0][1])
        codes = [first, *(self.expect(each, first.type, "Each value of the map") for _, each in term.entries[1:])]
        both = sorted(zip((key for key, _ in term.entries), codes, strict=True), key=lambda pair: pair[0])
        keys = [key for key, _ in both]
        runs = [code.run for _, code in both]
        return _gathered("map of texts", MapType(first.type), runs, lambda values: _zipped(keys, values), term.at)

    def _record(self, term: RecordLiteral) -> CheckedTerm:
        codes = [self.check(each) for _, each in term.entries]
        names = [name for name, _ in term.entries]
        of = RecordType(tuple((name, code.type) for name, code in zip(names, codes, strict=True)))
        return _gathered("record", of, [each.run for each in codes], lambda values: _zipped(names, values), term.at)

    def _access(self, term: RecordAccess) -> CheckedTerm:
        record = self.check(term.record)
        if not isinstance(record.type, RecordType):
            raise self.mistake(f"Only a record has fields, and this is {record.type}.", term.at)
        if record.type.fields is None:
            message = f'What a fact has is not known beforehand. Say its type: recordGet(…, "{term.name}", Text).'
            raise self.mistake(message, term.at)
        of = record.type.field(term.name)
        if of is None:
            hint = did_you_mean(term.name, (name for name, _ in record.type.fields))
            raise self.mistake(f"{record.type} has no field '{term.name}'.{hint}", term.at)
        inner, name, encode, at = record.run, term.name, encoder(of), term.at

        def run(machine: Machine) -> Pair:
            machine.step(at)
            value, node = inner(machine)
            return value[name], machine.operation(f".{name}", (node,), encode, value[name], at)

        return CheckedTerm(of, run)


def check_field(source: str, fields: Mapping[str, RuleType], declaration: FieldDeclaration) -> CheckedField:
    """A field's code. Its type must say everything, because it is the passport's."""
    checker = Checker(source, fields)
    if not closed(declaration.type):
        message = "A field's type says what its records hold: Record(name: Text, …)."
        raise checker.mistake(message, declaration.at)
    code = checker.expect(declaration.body, declaration.type, f"The field {declaration.path}")
    return CheckedField(checker.slots, code.run)


def _way(of: RuleType, wanted: RuleType) -> str:
    """How one gets from one type to another, if there is a usual way."""
    match of, wanted:
        case ((DecimalType() | QuantityType()), DecimalType(scale)):
            return f" Write toDec({scale}, …)."
        case _, DecimalType(scale) if of == INT:
            return f" Write toDec({scale}, …)."
        case QuantityType(unit), QuantityType(other):
            return f' Write convert("{unit}", "{other}", …) if the units fit.'
        case _, QuantityType(unit) if of == INT or isinstance(of, DecimalType):
            return f' Write toQty("{unit}", …).'
    if getattr(wanted, "of", None) == of:
        return " Write some(…)."
    if getattr(of, "of", None) == wanted:
        return ' Write requireSome(…, "CODE", "why") or unwrapOr(…, default).'
    return ""


def _kept(run: Run, slot: int) -> Run:
    def keep(machine: Machine) -> Pair:
        machine.frame[slot] = pair = run(machine)
        return pair

    return keep


def _asserted(condition: Run, reason: str, message: str, at: int) -> Run:
    def claim(machine: Machine) -> Pair:
        machine.step(at)
        holds, node = condition(machine)
        if not holds:
            raise machine.failure(ASSERTION_FAILED, message, at, reason)
        return True, machine.operation(reason, (node,), bool, True, at, ASSERT)

    return claim


def _zipped(names: list[str], values: list[Value]) -> dict[str, Value]:
    return dict(zip(names, values, strict=True))


def _gathered(label: str, of: RuleType, runs: list[Run], make: Any, at: int) -> CheckedTerm:
    encode = encoder(of)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        machine.grow(len(runs), at)
        pairs = [each(machine) for each in runs]
        value = make([each for each, _ in pairs])
        return value, machine.operation(label, tuple(node for _, node in pairs), encode, value, at)

    return CheckedTerm(of, run)
