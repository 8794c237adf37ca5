"""Checks: what must hold in a document, and a finding for everything that does not.

This is the last stage before a document is accepted. It proves that a table is complete: by its sums, its row count,
its running numbers, and the sums that pages carry over to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from waybill_documents.check_explanations import CARRIED, MISSING, OTHER, CheckReason, reasons
from waybill_documents.computed_values import MOST_FINDINGS
from waybill_documents.expressions import Expression, Scope
from waybill_documents.expressions.names import PAGES, PLACEHOLDER
from waybill_documents.expressions.numbers import add, number
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.geometry import Place
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.model import CheckRule
from waybill_documents.mapping.model import Mapping as MappingModel
from waybill_documents.messages import DocumentMessage
from waybill_documents.value_paths import ValueGroup, ValuePaths, column_paths
from waybill_documents.value_text import reader, show
from waybill_documents.values import Carry, Extracted, Row, Value
from waybill_documents.worked_formulas import shown

Carries = Mapping[str, Sequence[Carry]]
"""For each table, the sums its pages carry over, in the order of the document."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check."""

    name: str
    passed: bool | None
    """None when the check did not apply: its `when` does not hold, or there is no row to check."""
    required: bool
    findings: tuple[Finding, ...] = ()
    values: Sequence[str] = ()
    """The paths of the values it looked at, as in `net` and `lines[213].amount`; none when it did not apply."""
    doubted: Sequence[str] = ()
    """Those of them for which it did not hold."""

    def to_json(self) -> dict[str, Any]:
        """The result as JSON; a column that was looked at in every row is written once, as in `lines[*].amount`."""
        return {
            "name": self.name,
            "passed": self.passed,
            "required": self.required,
            "findings": [finding.to_json() for finding in self.findings],
            "values": column_paths(self.values),
        }


def check(mapping: MappingModel, extracted: Extracted, carries: Carries) -> list[CheckResult]:
    """Runs all checks of the mapping, in its order. Computed values must be there already."""
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
        self._scope = Scope(data, mapping.lookups, carried=carried, reader=reader(mapping.locale))

    def results(self) -> list[CheckResult]:
        return [self._result(name, rule) for name, rule in self._mapping.checks.items()]

    def _result(self, name: str, rule: CheckRule) -> CheckResult:
        rows: list[Any] = self._scope.data.get(rule.each) or [] if rule.each else [None]
        applied: list[int] = []
        failed: list[int] = []
        when, expect = rule.when.for_rows() if rule.when is not None else None, rule.expect.for_rows()
        for index, row in enumerate(rows):
            scope = self._scope if row is None else self._scope.with_row(row, index)
            if when is not None and when(scope) is not True:
                continue
            answer = expect(scope)
            if answer is None and self._nothing_is_carried(rule.expect):
                continue
            applied.append(index)
            if answer is not True:
                failed.append(index)
        if not applied:
            return CheckResult(name, None, rule.required)
        names = rule.expect.names | (rule.when.names if rule.when else frozenset())
        values = ValuePaths(self._groups(rule, names, applied))
        if not failed:
            return CheckResult(name, True, rule.required, (), values)
        findings = self._findings(name, rule, failed)
        return CheckResult(name, False, rule.required, findings, values, ValuePaths(self._groups(rule, names, failed)))

    def _nothing_is_carried(self, expect: Expression) -> bool:
        return any(self._scope.carried.get(table) is None for table in expect.carrying)

    def _groups(self, rule: CheckRule, names: frozenset[str], indices: Sequence[int]) -> Iterator[ValueGroup]:
        columns = self._columns(rule.each)
        sums = {
            f"{table}.{carry.column}" for table in rule.expect.carrying if (carry := self._mapping.tables[table].carry)
        }
        for name in sorted(names | sums):
            table, _, column = name.partition(".")
            if column:
                yield ValueGroup(column, table, range(len(self._extracted.tables.get(table, ()))))
            elif name in columns:
                yield ValueGroup(name, rule.each, indices)
            elif name != PAGES or name in self._extracted.fields:
                yield ValueGroup(name)

    def _columns(self, table: str | None) -> set[str]:
        if table is None:
            return set()
        rule = self._mapping.tables[table]
        return {*rule.columns, *rule.notes, *rule.computed}

    def _findings(self, name: str, rule: CheckRule, failed: list[int]) -> tuple[Finding, ...]:
        """The first findings in full, as many as a clerk reads, and one that counts the rest."""
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
                            DocumentMessage("check.more", check=f"checks.{name}", count=more),
                            rule=f"checks.{name}",
                        )
                    )
                break
        return tuple(told)

    def _row_findings(self, name: str, rule: CheckRule, scope: Scope, row: int | None) -> Iterator[Finding]:
        found = self._reasons(rule, scope)
        if rule.message:
            # The mapping has its own words: they make one sentence, which points to where the first reason points.
            found = islice(found, 1)
        for reason in found:
            path, place = self._place(reason, rule, row)
            line = None if row is None or "line" in reason.message.params else row + 1
            message = reason.message.adding(check=f"checks.{name}", line=line)
            if message.key == OTHER:
                message = message.adding(expression=rule.expect.text)
            # The mapping's sentence would have holes where values are missing, so the missing values are named instead.
            words = (rule.message or {}) if message.key != MISSING else {}
            if words:
                own = {language: self._filled(text, scope, message.params) for language, text in words.items()}
                message = message.adding(messages=own)
            yield Finding.at(place, FaultCode.CHECK_FAILED, message, path, f"checks.{name}")

    def _reasons(self, rule: CheckRule, scope: Scope) -> Iterator[CheckReason]:
        for reason in reasons(rule.expect.tree, scope, self._locale, rule.each):
            if reason.message.key == CARRIED:
                yield from self._broken.get(reason.about[0], ())
            else:
                yield reason

    def _filled(self, sentence: str, scope: Scope, params: dict[str, Any]) -> str:
        """The mapping's sentence with its values. Not `str.format`, which would give it access to Python's objects."""
        spelled = params.get("shown", {})

        def value(name: str) -> str:
            if scope.row is not None and name in scope.row:
                return show(_plain(scope.row[name]), self._locale)
            if name in scope.data:
                return show(_plain(scope.data[name]), self._locale)
            return str(spelled.get(name, params.get(name, "")))

        return PLACEHOLDER.sub(lambda match: value(match[1]), sentence)

    def _place(self, reason: CheckReason, rule: CheckRule, row: int | None) -> tuple[str | None, Place | None]:
        """The path of the first value the reason is about, and the first place known: a missing value has none."""
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
) -> Iterator[CheckReason]:
    """Carried sums that are wrong: `out` must be the sum of the rows so far, `into` must equal the `out` before it."""
    sums: list[Decimal | None] = [Decimal(0)]
    for row in rows:
        sums.append(sums[-1] if row.get(column) is None else add(sums[-1], row[column]))
    before: Carry | None = None
    for carry in carries:
        page, carried = carry.page, shown(carry.amount, locale)
        last = min(carry.after_rows, len(rows))
        about = (f"{table}[{last - 1}].{column}",) if last else ()
        if carry.direction == "out":
            expected = sums[last]
            if expected is None:
                message = DocumentMessage("check.carry.no_sum", page=page, carried=carried, rows=last)
                yield CheckReason(message, about, carry.place)
            elif number(carry.amount) != expected:
                so_far = shown(expected, locale)
                message = DocumentMessage("check.carry.wrong_sum", page=page, carried=carried, sum=so_far, rows=last)
                yield CheckReason(message, about, carry.place)
            before = carry
        elif before is None:
            yield CheckReason(DocumentMessage("check.carry.unfounded", page=page, carried=carried), about, carry.place)
        elif carry.amount != before.amount:
            out = shown(before.amount, locale)
            message = DocumentMessage(
                "check.carry.different", page=page, carried=carried, out=out, out_page=before.page
            )
            yield CheckReason(message, about, carry.place)


def _missing_carries(rows: Sequence[Row], carries: Sequence[Carry]) -> Iterator[CheckReason]:
    """Pages with rows that carry no sum forward although the table goes on after them."""
    last_of: dict[int, int] = {}
    for index, row in enumerate(rows):
        if page := min((value.places[0].page for value in row.values() if value.places), default=None):
            last_of[page] = index
    carrying = {carry.page for carry in carries if carry.direction == "out"}
    for page in sorted(last_of)[:-1]:
        if page not in carrying:
            near = next((value.places[0] for value in rows[last_of[page]].values() if value.places), None)
            yield CheckReason(DocumentMessage("check.carry.missing", page=page), (), near)


def _plain(value: Any) -> Any:
    return value if not isinstance(value, list | dict) else None
