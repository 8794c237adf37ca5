"""What evaluating needs beside the rules: facts, fuel, the values so far, and a record of how they came about."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from waybill_passport.rules import limits
from waybill_passport.rules.mistakes import FACT_TYPE_MISMATCH, OUT_OF_FUEL, VALUE_TOO_LARGE, RuleFailure
from waybill_passport.rules.values import FactMisfit, Json, Value, cells, summary, weight

CONST = "CONST"
FACT_GET = "FACT_GET"
FIELD_REF = "FIELD_REF"
OP = "OP"
ASSERT = "ASSERT"
COMPLIANCE_EMIT = "COMPLIANCE_EMIT"

Pair = tuple[Value, int]
"""A value and the number of the derivation's node it came from; -1 where nothing is recorded."""


class FactSource(Protocol):
    """The facts that rules read, by type and key. A snapshot is one."""

    def get(self, fact_type: str, key: str, /) -> Json | None: ...

    def by_prefix(self, fact_type: str, prefix: str, /) -> list[tuple[str, Json]]: ...


class Fuel(NamedTuple):
    """How much an evaluation may use: operations, and size of what it makes and reads (a list's item, 16 letters)."""

    steps: int = 1_000_000
    size: int = 4_000_000


class Tank:
    """The fuel that is left. Several evaluations may share one."""

    def __init__(self, fuel: Fuel) -> None:
        self.steps = fuel.steps
        self.size = fuel.size


class DerivationNode(NamedTuple):
    """One thing that happened. Its inputs are numbers of earlier nodes."""

    kind: str
    label: str
    inputs: tuple[int, ...]
    value_json: Json


class Machine:
    """One evaluation. After a failure it is thrown away."""

    def __init__(self, source: str, facts: FactSource, tank: Tank, *, records: bool) -> None:
        self.tank = tank
        self.path = ""
        self.frame: list[Pair] = []
        self.values: dict[str, Pair] = {}
        self.compliance: list[dict[str, str]] = []
        self.nodes: list[DerivationNode] = []
        self._source = source
        self._facts = facts
        self._records = records
        self._quiet = 0 if records else 1
        self._noticed: dict[int, None] = {}
        self._shared: dict[tuple[str, str, str], int] = {}
        self._fetched: dict[tuple[str, str, str], Json] = {}

    def step(self, at: int) -> None:
        """Charge one operation."""
        self.tank.steps -= 1
        if self.tank.steps < 0:
            raise self.failure(OUT_OF_FUEL, "The rules take more steps than they may.", at)

    def steps(self, count: int, at: int) -> None:
        self.tank.steps -= count
        if self.tank.steps < 0:
            raise self.failure(OUT_OF_FUEL, "The rules take more steps than they may.", at)

    def grow(self, size: int, at: int) -> None:
        """Charge the size of something new."""
        self.tank.size -= size
        if self.tank.size < 0:
            raise self.failure(OUT_OF_FUEL, "The rules make and read more data than they may.", at)

    def encoded(self, encode: Callable[[Value], Json], value: Value, at: int) -> Json:
        """The value as JSON, for the size it has there."""
        if isinstance(value, list | dict):
            self.grow(weight(value, self.tank.size + 1), at)
        return encode(value)

    def weigh(self, value: Value, at: int) -> None:
        """Charge looking at all of a value."""
        self.steps(weight(value, self.tank.steps + 1), at)

    def text(self, text: str, at: int) -> str:
        """Charge a new text."""
        self.grow(1 + len(text) // 16, at)
        if len(text) > limits.TEXT:
            raise self.failure(VALUE_TOO_LARGE, f"A text has at most {limits.TEXT} characters.", at)
        return text

    def failure(self, code: str, message: str, at: int, reason: str = "") -> RuleFailure:
        return RuleFailure(code, message, self.path, self._source.count("\n", 0, at) + 1, reason)

    def fetch(self, kind: str, fact_type: str, key: str, at: int) -> Json:
        """The payload of a fact (`get`), or those of all facts whose keys begin so (`by_prefix`)."""
        asked = (kind, fact_type, key)
        if asked in self._fetched:
            return self._fetched[asked]
        if kind == "get":
            payload = self._facts.get(fact_type, key)
            found = [] if payload is None else [payload]
        else:
            pairs = sorted(self._facts.by_prefix(fact_type, key), key=lambda pair: pair[0])
            payload = found = [each for _, each in pairs]
        self.steps(len(found), at)
        for each in found:
            self._check_fact(each, fact_type, key, at)
        self._fetched[asked] = payload
        return payload

    def _check_fact(self, payload: Json, fact_type: str, key: str, at: int) -> None:
        try:
            size = cells(payload)
        except FactMisfit as misfit:
            raise self.failure(misfit.code, f"{fact_type} {key}: {misfit.message}", at) from None
        self.grow(size, at)
        if not isinstance(payload, dict):
            raise self.failure(FACT_TYPE_MISMATCH, f"{fact_type} {key}: The fact is no JSON object.", at)

    def operation(
        self,
        label: str,
        inputs: tuple[int, ...],
        encode: Callable[[Value], Json],
        value: Value,
        at: int,
        kind: str = OP,
    ) -> int:
        """Record an operation, unless it happens for each item of a list: then the list's operation stands for all."""
        return -1 if self._quiet else self._note(kind, label, inputs, self.encoded(encode, value, at), at)

    def constant(self, label: str, encode: Callable[[Value], Json], value: Value, at: int) -> int:
        """Record a constant; the same one only once."""
        if self._quiet:
            return -1
        json = encode(value)
        known = (CONST, label, str(json))
        if known not in self._shared:
            self._shared[known] = self._note(CONST, label, (), json, at)
        return self._shared[known]

    def reading(
        self, kind: str, label: str, inputs: tuple[int, ...], encode: Callable[[Value], Json], value: Value, at: int
    ) -> int:
        """Record that a fact or field was read, or something emitted, even if that happens for each item of a list."""
        if not self._records:
            return -1
        inputs = tuple(each for each in inputs if each >= 0)
        known = (kind, label, "") if kind != COMPLIANCE_EMIT and (kind == FIELD_REF or not inputs) else None
        if known is None or known not in self._shared:
            index = self._note(kind, label, inputs, self.encoded(encode, value, at), at)
            if known is None:
                self.notice(index)
                return index
            self._shared[known] = index
        self.notice(self._shared[known])
        return self._shared[known]

    def _note(self, kind: str, label: str, inputs: tuple[int, ...], value: Json, at: int) -> int:
        shown, size = summary(value)
        self.grow(4 + size, at)
        self.nodes.append(DerivationNode(kind, label, inputs, shown))
        return len(self.nodes) - 1

    def notice(self, node: int) -> None:
        """Remember what is used while nothing is recorded: it becomes an input of the list's operation."""
        if self._quiet and node >= 0:
            self._noticed[node] = None

    def begin_items(self) -> None:
        """From here to `end_items`, what happens happens for each item of a list."""
        if self._quiet == 0:
            self._noticed = {}
        self._quiet += 1

    def end_items(self) -> tuple[int, ...]:
        self._quiet -= 1
        return tuple(self._noticed) if self._quiet == 0 else ()
