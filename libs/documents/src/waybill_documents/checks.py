"""Checks: what must hold in a document, and a finding for everything that does not.

The last stage before a document is accepted. A table proves here that it is complete: by its sums, its row count, its
running numbers, and the sums that pages carry over to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from waybill_documents.check_explanations import Reason, label, reasons
from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.expressions import Expression, Scope
from waybill_documents.expressions.names import PAGES, PLACEHOLDER
from waybill_documents.expressions.numbers import add, number
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import CheckRule
from waybill_documents.mapping.model import Mapping as MappingModel
from waybill_documents.value_text import show
from waybill_documents.values import Carry, Extracted, Row, Value
from waybill_documents.words import Place

Carries = Mapping[str, Sequence[Carry]]
"""For each table, the sums its pages carry over, in the order of the document."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check went."""

    name: str
    passed: bool | None
    """None when it did not apply: its `when` does not hold, or there is no row to check."""
    required: bool
    findings: tuple[Finding, ...] = ()
    values: tuple[str, ...] = ()
    """The paths it looked at, as in `net` and `lines[213].amount`; none when it did not apply."""
    doubted: tuple[str, ...] = ()
    """Those of them that were looked at where it did not hold."""

    def to_json(self) -> dict[str, Any]:
        """The result; a column that was looked at in every row is written once, as in `lines[*].amount`."""
        return {
            "name": self.name,
            "passed": self.passed,
            "required": self.required,
            "findings": [finding.to_json() for finding in self.findings],
            "values": list(dict.fromkeys(_without_index(path) for path in self.values)),
        }


def check(mapping: MappingModel, extracted: Extracted, carries: Carries) -> list[CheckResult]:
    """All checks of the mapping, in its order, after everything has been computed."""
    return _Checking(mapping, extracted, carries).results()


class _Checking:
    def __init__(self, mapping: MappingModel, extracted: Extracted, carries: Carries) -> None:
        self._mapping = mapping
        self._extracted = extracted
        self._locale: LocaleRules = locale_rules(mapping.locale)
        data = extracted.data()
        self._broken = {
            table: list(
                _broken_carries(table, rule.carry.column, data.get(table) or [], carries.get(table, ()), self._locale)
            )
            + list(_missing_carries(extracted.tables.get(table, ()), carries.get(table, ())))
            for table, rule in mapping.tables.items()
            if rule.carry is not None
        }
        carried = {
            table: False if broken else True if carries.get(table) else None for table, broken in self._broken.items()
        }
        self._scope = Scope(data, mapping.lookups, carried=carried)

    def results(self) -> list[CheckResult]:
        return [self._result(name, rule) for name, rule in self._mapping.checks.items()]

    def _result(self, name: str, rule: CheckRule) -> CheckResult:
        rows: list[Any] = self._scope.data.get(rule.each) or [] if rule.each else [None]
        applied: list[int] = []
        failed: list[int] = []
        for index, row in enumerate(rows):
            scope = self._scope if row is None else self._scope.with_row(row, index)
            if rule.when is not None and not rule.when.holds(scope):
                continue
            answer = rule.expect.evaluate(scope)
            if answer is None and self._nothing_is_carried(rule.expect):
                continue
            applied.append(index)
            if answer is not True:
                failed.append(index)
        if not applied:
            return CheckResult(name, None, rule.required)
        names = rule.expect.names | (rule.when.names if rule.when else frozenset())
        values = tuple(self._paths(rule, names, applied))
        if not failed:
            return CheckResult(name, True, rule.required, (), values)
        findings = self._findings(name, rule, failed)
        return CheckResult(name, False, rule.required, findings, values, tuple(self._paths(rule, names, failed)))

    def _nothing_is_carried(self, expect: Expression) -> bool:
        return any(self._scope.carried.get(table) is None for table in expect.carrying)

    def _paths(self, rule: CheckRule, names: frozenset[str], indices: Sequence[int]) -> Iterator[str]:
        columns = self._columns(rule.each)
        sums = {
            f"{table}.{carry.column}" for table in rule.expect.carrying if (carry := self._mapping.tables[table].carry)
        }
        for name in sorted(names | sums):
            table, _, column = name.partition(".")
            if column:
                yield from (f"{table}[{index}].{column}" for index in range(len(self._extracted.tables.get(table, ()))))
            elif name in columns:
                yield from (f"{rule.each}[{index}].{name}" for index in indices)
            elif name != PAGES or name in self._extracted.fields:
                yield name

    def _columns(self, table: str | None) -> set[str]:
        if table is None:
            return set()
        rule = self._mapping.tables[table]
        return {*rule.columns, *rule.notes, *rule.computed}

    def _findings(self, name: str, rule: CheckRule, failed: list[int]) -> tuple[Finding, ...]:
        """In full for a clerk's first screen, and how many more there are."""
        told: list[Finding] = []
        for done, index in enumerate(failed):
            row = index if rule.each else None
            scope = self._scope if row is None else self._scope.with_row(self._scope.data[rule.each or ""][row], row)
            mine = self._row_findings(name, rule, scope, row)
            told += islice(mine, MOST_FINDINGS - len(told))
            more = (len(failed) - done - 1) + sum(1 for _ in mine)
            if len(told) >= MOST_FINDINGS:
                if more:
                    told.append(
                        Finding(
                            FaultCode.CHECK_FAILED,
                            f"{label(name)}: there {'is one' if more == 1 else f'are {more}'} more like these",
                            rule=f"checks.{name}",
                            params={"kind": "more", "check": name, "count": more},
                        )
                    )
                break
        return tuple(told)

    def _row_findings(self, name: str, rule: CheckRule, scope: Scope, row: int | None) -> Iterator[Finding]:
        found = self._reasons(rule.expect, scope)
        if rule.message:
            # The mapping says it in its own words: one sentence, where the first reason points to.
            found = islice(found, 1)
        for reason in found:
            path, place = self._place(reason, rule, row)
            params: dict[str, Any] = {"kind": reason.kind, "check": name}
            if row is not None:
                params["line"] = row + 1
            params |= reason.params
            if reason.kind == "other":
                params["expression"] = rule.expect.text
            # A sentence about values that are not there would have holes in it: then it is said which are missing.
            words = (rule.message or {}) if reason.kind != "missing" else {}
            said = {language: self._filled(text, scope, params) for language, text in words.items()}
            if set(said) - {"en"}:
                params["messages"] = said
            yield Finding(
                FaultCode.CHECK_FAILED,
                said.get("en") or self._generated(reason, name, rule, row),
                path,
                f"checks.{name}",
                place.page if place else None,
                place.box if place else None,
                params,
            )

    def _reasons(self, expect: Expression, scope: Scope) -> Iterator[Reason]:
        for reason in reasons(expect.tree, scope, self._locale):
            if reason.kind == "carried":
                yield from self._broken.get(reason.about[0], ())
            else:
                yield reason

    def _generated(self, reason: Reason, name: str, rule: CheckRule, row: int | None) -> str:
        message = reason.message or f"{label(name)} does not hold: {rule.expect.text}"
        return message if row is None else f"line {row + 1}: {message}"

    def _filled(self, sentence: str, scope: Scope, params: dict[str, Any]) -> str:
        """The mapping's sentence with its values; not `str.format`, which would let it look into Python."""

        def value(name: str) -> str:
            if scope.row is not None and name in scope.row:
                return show(_plain(scope.row[name]), self._locale)
            if name in scope.data:
                return show(_plain(scope.data[name]), self._locale)
            return str(params.get(name, ""))

        return PLACEHOLDER.sub(lambda match: value(match[1]), sentence)

    def _place(self, reason: Reason, rule: CheckRule, row: int | None) -> tuple[str | None, Place | None]:
        """The path of the first value the reason is about, and the first place there is: a missing value has none."""
        values = [found for name in reason.about if (found := self._value(name, rule, row))]
        if row is not None:
            near = self._extracted.tables[rule.each or ""][row]
            values += [(f"{rule.each}[{row}]", value) for value in near.values()]
        path = values[0][0] if values else None
        return path, reason.place or next((value.places[0] for _, value in values if value.places), None)

    def _value(self, name: str, rule: CheckRule, row: int | None) -> tuple[str, Value] | None:
        tables = self._extracted.tables
        if row is not None and rule.each and name in tables[rule.each][row]:
            return f"{rule.each}[{row}].{name}", tables[rule.each][row][name]
        if name in self._extracted.fields:
            return name, self._extracted.fields[name]
        table, bracket, rest = name.partition("[")
        if bracket:
            index, _, column = rest.partition("].")
            return name, tables[table][int(index)][column]
        return None


def _broken_carries(
    table: str, column: str, rows: Sequence[Mapping[str, Any]], carries: Sequence[Carry], locale: LocaleRules
) -> Iterator[Reason]:
    """Sums carried over that do not fit: `out` must be the sum of the rows so far, `into` the `out` before it."""
    sums: list[Decimal | None] = [Decimal(0)]
    for row in rows:
        sums.append(sums[-1] if row.get(column) is None else add(sums[-1], row[column]))
    before: Carry | None = None
    for carry in carries:
        amount = show(carry.amount, locale)
        params: dict[str, Any] = {"page": carry.page, "carried": amount}
        last = min(carry.after_rows, len(rows))
        about = (f"{table}[{last - 1}].{column}",) if last else ()
        if carry.direction == "out":
            expected = sums[last]
            if expected is None or number(carry.amount) != expected:
                so_far = show(expected, locale)
                params |= {"sum": so_far, "rows": last}
                message = f"page {carry.page} carries {amount} forward, the lines up to there add up to {so_far}"
                yield Reason(message, "carried", about, params, carry.place)
            before = carry
        elif before is None:
            message = f"page {carry.page} brings in {amount}, but no page before it carries a sum forward"
            yield Reason(message, "carried", about, params, carry.place)
        elif carry.amount != before.amount:
            out = show(before.amount, locale)
            params |= {"out": out, "out_page": before.page}
            message = f"page {carry.page} brings in {amount}, page {before.page} carries {out} forward"
            yield Reason(message, "carried", about, params, carry.place)


def _missing_carries(rows: Sequence[Row], carries: Sequence[Carry]) -> Iterator[Reason]:
    """Pages on which rows begin, before the last of them, that carry no sum forward."""
    last_of: dict[int, int] = {}
    for index, row in enumerate(rows):
        if page := min((value.places[0].page for value in row.values() if value.places), default=None):
            last_of[page] = index
    carrying = {carry.page for carry in carries if carry.direction == "out"}
    for page in sorted(last_of)[:-1]:
        if page not in carrying:
            message = f"page {page} carries no sum forward, and the table goes on after it"
            near = next((value.places[0] for value in rows[last_of[page]].values() if value.places), None)
            yield Reason(message, "carried", (), {"page": page}, near)


def _plain(value: Any) -> Any:
    return value if not isinstance(value, list | dict) else None


def _without_index(path: str) -> str:
    table, bracket, rest = path.partition("[")
    return f"{table}[*]{rest[rest.index(']') + 1 :]}" if bracket else path
