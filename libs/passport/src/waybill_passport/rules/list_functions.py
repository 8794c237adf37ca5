"""Functions that do something with each item of a list.

The derivation has one operation for the whole list. Its inputs are the list and whatever its items' function used from
elsewhere, so that a list of a thousand facts does not make a proof of thousands of nodes.
"""

from __future__ import annotations

from waybill_passport.rules.arguments import Arguments
from waybill_passport.rules.checked_term import CheckedTerm
from waybill_passport.rules.machine import Machine, Pair
from waybill_passport.rules.types import BOOL, ListType
from waybill_passport.rules.values import Value, encoder


def empty_list(arguments: Arguments) -> CheckedTerm:
    of, at = ListType(arguments.type(0)), arguments.at
    encode, label = encoder(of), str(of)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        value: list[Value] = []
        return value, machine.constant(label, encode, value, at)

    return CheckedTerm(of, run)


def map_items(arguments: Arguments) -> CheckedTerm:
    items, item_type = arguments.list_of_any(0)
    function = arguments.function(1, item_type)
    of, at, slot, body = ListType(function.code.type), arguments.at, function.slots[0], function.run
    encode = encoder(of)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = items.run(machine)
        machine.grow(len(values), at)
        machine.begin_items()
        made: list[Value] = []
        for each in values:
            machine.frame[slot] = (each, -1)
            made.append(body(machine)[0])
        inputs = (node, *machine.end_items())
        return made, machine.operation("map", inputs, encode, made, at)

    return CheckedTerm(of, run)


def filter_items(arguments: Arguments) -> CheckedTerm:
    items, item_type = arguments.list_of_any(0)
    function = arguments.function(1, item_type)
    if function.code.type != BOOL:
        message = f"The condition of filter must be Bool, but this is {function.code.type}."
        raise arguments.mistake(message, arguments.body_place(1))
    at, slot, body = arguments.at, function.slots[0], function.run
    encode = encoder(items.type)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = items.run(machine)
        machine.grow(len(values), at)
        machine.begin_items()
        kept: list[Value] = []
        for each in values:
            machine.frame[slot] = (each, -1)
            if body(machine)[0]:
                kept.append(each)
        inputs = (node, *machine.end_items())
        return kept, machine.operation("filter", inputs, encode, kept, at)

    return CheckedTerm(items.type, run)


def fold(arguments: Arguments) -> CheckedTerm:
    items, item_type = arguments.list_of_any(0)
    begin = arguments.any(1)
    function = arguments.function(2, begin.type, item_type)
    if function.code.type != begin.type:
        message = f"Each step of fold must be {begin.type}, as its first value is, but this is {function.code.type}."
        raise arguments.mistake(message, arguments.body_place(2))
    at, (so_far, item), body = arguments.at, function.slots, function.run
    encode = encoder(begin.type)

    def run(machine: Machine) -> Pair:
        machine.step(at)
        values, node = items.run(machine)
        value, begin_node = begin.run(machine)
        machine.begin_items()
        for each in values:
            machine.frame[so_far] = (value, -1)
            machine.frame[item] = (each, -1)
            value = body(machine)[0]
        inputs = (node, begin_node, *machine.end_items())
        return value, machine.operation("fold", inputs, encode, value, at)

    return CheckedTerm(begin.type, run)
