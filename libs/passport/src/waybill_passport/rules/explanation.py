"""Explains a field: what it depends on, and how its value came about over some facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from waybill_passport.rules.dependencies import used_facts
from waybill_passport.rules.evaluator import Evaluation
from waybill_passport.rules.machine import ASSERT, CONST, FACT_GET, FIELD_REF, DerivationNode, FactSource, Fuel
from waybill_passport.rules.mistakes import TYPE_ERROR, RuleFailure, did_you_mean
from waybill_passport.rules.package import RuleField, RulePackage
from waybill_passport.rules.values import Json

_LINES = 200
_WIDTH = 100


class UnknownField(Exception):
    """The package has no such field."""

    code = TYPE_ERROR


@dataclass(frozen=True, slots=True)
class FieldExplanation:
    """A field and its value. `steps` are lines: each value, indented below what was made of it."""

    field: RuleField
    uses: tuple[str, ...]
    facts: tuple[str, ...]
    value: Json
    failure: RuleFailure | None
    steps: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"{self.field.path}: {self.field.type}   (line {self.field.line})"
        yield f"  uses fields: {', '.join(self.uses) or 'none'}"
        yield f"  reads facts: {', '.join(self.facts) or 'none'}"
        if self.failure is not None:
            yield f"  fails: {self.failure}"
        else:
            yield f"  value: {_shown(self.value)}"
            yield from (f"  {step}" for step in self.steps)


def explain(package: RulePackage, path: str, facts: FactSource, fuel: Fuel = Fuel()) -> FieldExplanation:  # noqa: B008 - it never changes
    """Evaluate a field with what it uses, and say how. A failure is part of the explanation."""
    if path not in package.declarations:
        raise UnknownField(f"There is no field '{path}'.{did_you_mean(path, package.declarations)}")
    order = package.order_of([path])
    field = next(each for each in package.fields if each.path == path)
    read = {fact: None for each in order for fact in used_facts(package.declarations[each].body)}
    uses = tuple(each for each in order if each != path)
    try:
        evaluation = package.evaluate(facts, fuel, only=[path])
    except RuleFailure as failure:
        return FieldExplanation(field, uses, tuple(read), None, failure, ())
    steps = tuple(_steps(evaluation, evaluation.field_nodes[path]))
    return FieldExplanation(field, uses, tuple(read), evaluation.fields[path], None, steps)


def _steps(evaluation: Evaluation, root: int) -> Iterator[str]:
    """The derivation as a tree; what was shown once is not repeated."""
    waiting = [(root, 0)]
    shown: set[int] = set()
    lines = 0
    while waiting:
        number, depth = waiting.pop()
        node = evaluation.derivation[number]
        again = number in shown and bool(node.inputs)
        lines += 1
        if lines > _LINES:
            yield "…"
            return
        yield f"{'  ' * min(depth, 30)}{_step(node)}{' (as above)' if again else ''}"
        if not again:
            shown.add(number)
            waiting += [(each, depth + 1) for each in reversed(node.inputs)]


def _step(node: DerivationNode) -> str:
    words = {CONST: "constant", FACT_GET: "fact", FIELD_REF: "field", ASSERT: "assert"}
    what = "constant" if node.kind == CONST else f"{words.get(node.kind, '')} {node.label}".strip()
    return f"{what} = {_shown(node.value_json)}"


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
