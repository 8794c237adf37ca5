"""Explains why a check does not hold, as messages for a clerk. `checks.py` decides whether it holds.

Values appear in a message exactly and, for the sentence, as the document prints them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from waybill_documents.expressions import Comparison, Scope
from waybill_documents.expressions.expression import sides
from waybill_documents.expressions.nodes import Both, Call, Compare, Constant, Name, Node, Not, TableColumn, walk
from waybill_documents.expressions.numbers import subtract
from waybill_documents.expressions.text_functions import as_number, empty
from waybill_documents.geometry import Place
from waybill_documents.locales import LocaleRules
from waybill_documents.messages import DocumentMessage, Shown
from waybill_documents.worked_formulas import FormulaWriter, shown, single_name

CARRIED = "check.carried"
"""The key of a reason that only names the table. `checks.py` replaces it by the sums that are wrong."""
MISSING = "check.missing"
OTHER = "check.other"

_SHOULD = {
    "==": DocumentMessage("check.should.equal"),
    "!=": DocumentMessage("check.should.differ"),
    "<": DocumentMessage("check.should.be_less"),
    "<=": DocumentMessage("check.should.be_at_most"),
    ">": DocumentMessage("check.should.be_more"),
    ">=": DocumentMessage("check.should.be_at_least"),
}


@dataclass(frozen=True, slots=True)
class CheckReason:
    """One message, and the names or cells it is about."""

    message: DocumentMessage
    about: tuple[str, ...] = ()
    """Names as in expressions, the most important one first; `lines[3].no` for a cell."""
    place: Place | None = None
    """The place to look at, if it is not that of the names."""


def reasons(tree: Node, scope: Scope, locale: LocaleRules, table: str | None = None) -> Iterator[CheckReason]:
    """Every part of an expression that does not hold. `table` is the table of the scope's row.

    Sums carried over are only named here, by the key `CARRIED`.
    """
    yield from _Explainer(scope, locale, table).reasons(tree)


def _names(tree: Node) -> list[str]:
    return [part.name for part in walk(tree) if isinstance(part, Name | TableColumn)]


class _Explainer:
    """Explains the parts of one expression, for the document or for one row of a table."""

    def __init__(self, scope: Scope, locale: LocaleRules, table: str | None) -> None:
        self._scope = scope
        self._locale = locale
        self._formulas = FormulaWriter(scope, locale, table)

    def reasons(self, tree: Node) -> Iterator[CheckReason]:
        match tree:
            case Both():
                for part in tree.parts:
                    if self._formulas.evaluated(part) is not True:
                        yield from self.reasons(part)
            case Call(function="if"):
                chosen = tree.arguments[1 if self._formulas.evaluated(tree.arguments[0]) is True else 2]
                yield from self.reasons(chosen)
            case Compare():
                if comparison := sides(tree, self._scope):
                    yield self._comparison(comparison)
            case Call(function="running", arguments=(TableColumn() as column,)):
                yield from self._gaps(column)
            case Call(function="unique", arguments=(TableColumn() as column,)):
                yield from self._repeated(column)
            case Call(function="carried", arguments=(Constant() as table,)):
                yield CheckReason(DocumentMessage("check.carried"), (str(table.value),))
            case Not(operand=Call(function="empty", arguments=(Name() as name,))):
                yield self._absent([name.name])
            case _:
                absent = self._absent_names(tree)
                yield (
                    self._absent(absent) if absent else CheckReason(DocumentMessage("check.other"), tuple(_names(tree)))
                )

    def _absent_names(self, tree: Node) -> list[str]:
        values = [(part.name, self._formulas.evaluated(part)) for part in walk(tree) if isinstance(part, Name)]
        return [name for name, value in values if empty(value)]

    def _absent(self, names: list[str]) -> CheckReason:
        return CheckReason(
            DocumentMessage("check.missing", missing=[self._formulas.path(name) for name in dict.fromkeys(names)]),
            tuple(names),
        )

    def _comparison(self, found: Comparison) -> CheckReason:
        tree = found.tree
        absent = self._absent_names(tree)
        if found.holds is None and absent:
            return self._absent(absent)
        left_name, right_name = single_name(tree.left), single_name(tree.right)
        about = tuple(name for name in (right_name, left_name) if name) or tuple(_names(tree))
        return CheckReason(self._compared(found, left_name, right_name).adding(**self._values(found)), about)

    def _values(self, found: Comparison) -> dict[str, Any]:
        """What every comparison says in its parameters, whatever its sentence."""
        values: dict[str, Any] = {
            "left": shown(found.left, self._locale),
            "right": shown(found.right, self._locale),
            "operator": found.operator,
        }
        apart = subtract(found.left, found.right)
        if apart is not None:
            values["difference"] = shown(apart.copy_abs(), self._locale)
        if found.tolerance is not None:
            values["tolerance"] = shown(found.tolerance, self._locale)
        return values

    def _compared(self, found: Comparison, left_name: str | None, right_name: str | None) -> DocumentMessage:
        tree = found.tree
        left, right = shown(found.left, self._locale), shown(found.right, self._locale)
        if isinstance(tree.left, Constant):
            return DocumentMessage("check.not_matching", side=self._formulas.side(tree.right, right), left=left)
        if found.operator != "==" or isinstance(tree.right, Constant):
            return DocumentMessage(
                "check.comparison",
                side=self._formulas.side(tree.left, left),
                should=_SHOULD[found.operator],
                name=self._formulas.path(right_name) if right_name else None,
                right=right,
            )
        if right_name and not left_name:
            return self._against(tree.left, left, right_name, right)
        if left_name and not right_name:
            return self._against(tree.right, right, left_name, left)
        return DocumentMessage(
            "check.unequal",
            left_side=self._formulas.side(tree.left, left),
            right_side=self._formulas.side(tree.right, right),
        )

    def _against(self, calculated: Node, result: Shown, name: str, printed: Shown) -> DocumentMessage:
        """Compares a calculation with the printed value. In a row the line number identifies it, elsewhere its name."""
        side = self._formulas.side(calculated, result)
        if self._formulas.is_of_row(name):
            return DocumentMessage(
                "check.calculation_in_row", side=side, name=self._formulas.path(name), printed=printed
            )
        return DocumentMessage("check.calculation", side=side, name=self._formulas.path(name), printed=printed)

    def _gaps(self, column: TableColumn) -> Iterator[CheckReason]:
        """Running numbers that do not increase by one."""
        last = Decimal(0)
        found = False
        for index, value in enumerate(self._scope.column(column.table, column.column)):
            if empty(value):
                continue
            found = True
            here = as_number(value)
            if here != last + 1:
                params = {"after": last, "found": str(value)[:60], "line": index + 1}
                if here is None:
                    message = DocumentMessage("check.numbering.not_a_number", column=column.name).adding(**params)
                elif last == 0:
                    message = DocumentMessage("check.numbering.start").adding(**params)
                elif here > last + 1:
                    message = DocumentMessage("check.numbering.gap").adding(**params)
                else:
                    message = DocumentMessage("check.numbering.backwards").adding(**params)
                yield CheckReason(message, (f"{column.table}[{index}].{column.column}",))
            last = last + 1 if here is None else here
        if not found:
            yield CheckReason(DocumentMessage("check.column_empty", column=column.name))

    def _repeated(self, column: TableColumn) -> Iterator[CheckReason]:
        """Values that appear again in a column."""
        seen: dict[Any, int] = {}
        for index, value in enumerate(self._scope.column(column.table, column.column)):
            if empty(value):
                continue
            first = seen.setdefault(value, index)
            if first != index:
                message = DocumentMessage(
                    "check.repeated",
                    column=column.name,
                    value=shown(value, self._locale),
                    first=first + 1,
                    line=index + 1,
                )
                yield CheckReason(message, (f"{column.table}[{index}].{column.column}",))
