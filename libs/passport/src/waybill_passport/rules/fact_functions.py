"""Functions that read facts and other fields, and the one that reports on compliance."""

from __future__ import annotations

from waybill_passport.rules.arguments import Arguments
from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.machine import COMPLIANCE_EMIT, FACT_GET, FIELD_REF, Machine, Pair
from waybill_passport.rules.mistakes import did_you_mean
from waybill_passport.rules.types import BOOL, OPEN_RECORD, TEXT, ListType, RecordType, RuleType, optional
from waybill_passport.rules.values import FactMisfit, Json, Value, decode, encoder


def field(arguments: Arguments) -> CheckedTerm:
    path, at = arguments.text(0, "the path of a field"), arguments.at
    fields = arguments.checker.fields
    if path not in fields:
        message = f"There is no field '{path}'.{did_you_mean(path, fields)}"
        raise arguments.checker.mistake(message, arguments.place(0))
    encode = encoder(fields[path])

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = machine.values[path]
        return value, machine.reading(FIELD_REF, path, (node,), encode, value, at)

    return CheckedTerm(fields[path], run)


def get_fact(arguments: Arguments) -> CheckedTerm:
    return _facts(arguments, "get")


def by_prefix(arguments: Arguments) -> CheckedTerm:
    return _facts(arguments, "by_prefix")


def _facts(arguments: Arguments, kind: str) -> CheckedTerm:
    fact_type, key = arguments.of(0, TEXT), arguments.of(1, TEXT)
    record: RuleType = OPEN_RECORD
    if arguments.count == 3:
        record = arguments.type(2)
        if not isinstance(record, RecordType):
            raise arguments.mistake(f"A fact is a record, not {record}.", arguments.place(2))
    of = optional(record) if kind == "get" else ListType(record)
    encode, at = encoder(of), arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        wanted_type, type_node = _named(machine, fact_type)
        wanted_key, key_node = _named(machine, key)
        payload = machine.fetch(kind, wanted_type, wanted_key, at)
        label = f"{wanted_type} {wanted_key}{'' if kind == 'get' else '*'}"
        node = machine.reading(FACT_GET, label, (type_node, key_node), _as_it_is, payload, at)
        if record == OPEN_RECORD:
            return payload, node
        value = _decoded(machine, of, payload, f"{wanted_type} {wanted_key}", at)
        return value, machine.operation(f"as {of}", (node,), encode, value, at)

    return CheckedTerm(of, run)


def _named(machine: Machine, code: CheckedTerm) -> Pair:
    """A text literal is in the label already; it needs no node of its own."""
    if code.literal is not None:
        return code.literal, -1
    return code.run(machine)


def _as_it_is(payload: Json) -> Json:
    return payload


def _decoded(machine: Machine, of: RuleType, payload: Json, where: str, at: int) -> Value:
    if isinstance(payload, list | dict):
        machine.weigh(payload, at)
    try:
        return decode(of, payload)
    except FactMisfit as misfit:
        raise machine.failure(misfit.code, f"{where}: {misfit.message}", at) from None


def record_get(arguments: Arguments) -> CheckedTerm:
    """From a fact, which may hold anything, or from a record whose type is known."""
    record = arguments.any(0)
    if not isinstance(record.type, RecordType):
        message = f"Argument 1 must be a Record, but this is {record.type}."
        raise arguments.mistake(message, arguments.place(0))
    if record.type.fields is not None:
        return _known(arguments, record, record.type)
    if arguments.count != 3:
        raise arguments.mistake("Say which type the value has in the fact.", arguments.at)
    name = arguments.of(1, TEXT)
    of, at = optional(arguments.type(2)), arguments.at
    encode = encoder(of)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, record_node = record.run(machine)
        key, key_node = _named(machine, name)
        found = value.get(key)
        if found is not None:
            found = _decoded(machine, of, found, key, at)
        inputs = (record_node, key_node) if key_node >= 0 else (record_node,)
        return found, machine.operation(f"recordGet {key}", inputs, encode, found, at)

    return CheckedTerm(of, run)


def _known(arguments: Arguments, record: CheckedTerm, of: RecordType) -> CheckedTerm:
    name, at = arguments.text(1, "the name of a record's field"), arguments.at
    found = of.field(name)
    if found is None or arguments.count == 3:
        hint = did_you_mean(name, (each for each, _ in of.fields or ()))
        why = "takes no type from a record whose type is known" if found else f"finds no field '{name}' in {of}"
        raise arguments.mistake(f"recordGet {why}.{hint if found is None else ''}", arguments.place(1))
    encode = encoder(optional(found))

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value, node = record.run(machine)
        return value[name], machine.operation(f"recordGet {name}", (node,), encode, value[name], at)

    return CheckedTerm(optional(found), run)


def emit_compliance(arguments: Arguments) -> CheckedTerm:
    parts = [arguments.of(index, TEXT) for index in range(3)]
    at = arguments.at

    def run(machine: Machine) -> Pair:
        machine.step(at)
        pairs = [each.run(machine) for each in parts]
        rule, status, evidence = (text for text, _ in pairs)
        emitted = {"rule": rule, "status": status, "evidence": evidence}
        machine.grow(4 + (len(rule) + len(status) + len(evidence)) // 16, at)
        machine.compliance.append(emitted)
        nodes = tuple(node for _, node in pairs)
        return True, machine.reading(COMPLIANCE_EMIT, rule, nodes, _as_it_is, emitted, at)

    return CheckedTerm(BOOL, run)
