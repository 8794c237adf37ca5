"""Evaluates the fields of a package in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waybill_passport.rules.checked_term import CheckedField
from waybill_passport.rules.machine import DerivationNode, Machine
from waybill_passport.rules.types import RuleType
from waybill_passport.rules.values import Json, encoder


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a package makes of facts.

    `fields` has the values by path, in the order of evaluation. `derivation` says how they came about: the node of a
    field's value is `field_nodes[path]`, and every node's inputs come before it.
    """

    fields: Mapping[str, Json]
    compliance: list[dict[str, str]]
    derivation: list[DerivationNode]
    field_nodes: Mapping[str, int]


def run_field(machine: Machine, path: str, code: CheckedField) -> None:
    """Evaluate one field. Those it uses must have been evaluated."""
    machine.path = path
    machine.frame = [(None, -1)] * code.slots
    machine.values[path] = code.run(machine)


def evaluate_fields(
    machine: Machine,
    order: Iterable[str],
    codes: Mapping[str, CheckedField],
    types: Mapping[str, RuleType],
    places: Mapping[str, int],
) -> Evaluation:
    """Evaluate fields and write their values as JSON. `places` says where in the source they are."""
    fields: dict[str, Json] = {}
    for path in order:
        run_field(machine, path, codes[path])
        fields[path] = machine.encoded(encoder(types[path]), machine.values[path][0], places[path])
    nodes = {path: machine.values[path][1] for path in fields}
    return Evaluation(fields, machine.compliance, machine.nodes, nodes)
