"""Checks that the expressions of a mapping make sense: every name exists, is computed in time, and has a fitting kind.

This is part of loading a mapping. A mapping that passes cannot fail on any document; at worst a value is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from waybill_documents.expressions.expression import Expression
from waybill_documents.expressions.functions import Kind
from waybill_documents.expressions.kinds import must_give
from waybill_documents.expressions.parser import WORDS
from waybill_documents.expressions.tokens import ExpressionError
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.model import CheckRule, TableRule, ValueType, XmlNode
from waybill_documents.mapping.model import Mapping as MappingModel
from waybill_documents.messages import DocumentMessage

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""A value in the message of a check."""
ALWAYS_KNOWN = frozenset({"left", "right", "line", "difference"})
"""What a message can use besides the mapping's names."""
PAGES = "pages"
"""The number of pages: a name that every expression has, unless the mapping defines it itself."""

_KINDS: dict[ValueType, Kind] = {
    "text": Kind.TEXT,
    "digits": Kind.TEXT,
    "integer": Kind.NUMBER,
    "decimal": Kind.NUMBER,
    "date": Kind.DATE,
}

Kinds = dict[str, Kind]


def check_names(mapping: MappingModel) -> None:
    """Raise `MappingFault` for the first expression that makes no sense, and for names that are used twice."""
    _check_unambiguous(mapping)
    document: Kinds = {PAGES: Kind.NUMBER}
    document |= {name: _KINDS[rule.type] for name, rule in mapping.fields.items()}
    for table, rule in mapping.tables.items():
        document[table] = Kind.TABLE
        document |= {f"{table}.{name}": kind for name, kind in _columns(rule).items()}
    for table, rule in mapping.tables.items():
        _check_table(mapping, table, rule, document)
    for name, expression in mapping.computed.items():
        document[name] = _check(mapping, expression, document, f"computed.{name}", later=mapping.computed)
    for name, check in mapping.checks.items():
        _check_check(mapping, check, document, f"checks.{name}")
    if mapping.xml is not None:
        _check_node(mapping, mapping.xml.root, document, "xml")


def _columns(rule: TableRule) -> Kinds:
    return dict.fromkeys(rule.notes, Kind.TEXT) | {name: _KINDS[column.type] for name, column in rule.columns.items()}


def _row(table: str, document: Kinds) -> Kinds:
    """What bare names mean in a row of the table."""
    prefix = f"{table}."
    return document | {name.removeprefix(prefix): kind for name, kind in document.items() if name.startswith(prefix)}


def _check_unambiguous(mapping: MappingModel) -> None:
    taken: dict[str, str] = {}
    for section, names in (("fields", mapping.fields), ("tables", mapping.tables), ("computed", mapping.computed)):
        for name in names:
            if name in taken:
                raise MappingFault(
                    DocumentMessage("mapping.name_taken", name=name, section=taken[name]), f"{section}.{name}"
                )
            taken[name] = section
    for table, rule in mapping.tables.items():
        for name in rule.computed:
            if name in rule.columns or name in rule.notes:
                raise MappingFault(
                    DocumentMessage("mapping.column_taken", name=name), f"tables.{table}.computed.{name}"
                )
        for name in (*rule.columns, *rule.notes, *rule.computed):
            taken[name] = f"tables.{table}"
    for name, section in taken.items():
        if name in WORDS:
            raise MappingFault(DocumentMessage("mapping.reserved_name", name=name), section)


def _check_table(mapping: MappingModel, table: str, rule: TableRule, document: Kinds) -> None:
    where = f"tables.{table}"
    if rule.row.begins is not None and rule.row.begins not in rule.columns:
        raise _missing(rule.row.begins, rule.columns, f"{where}.row.begins", DocumentMessage("mapping.unknown_column"))
    if rule.carry is not None:
        kinds = _columns(rule)
        if rule.carry.column not in kinds:
            raise _missing(rule.carry.column, kinds, f"{where}.carry.column", DocumentMessage("mapping.unknown_column"))
        if kinds[rule.carry.column] is not Kind.NUMBER:
            raise MappingFault(
                DocumentMessage("mapping.carry_not_a_number", name=rule.carry.column), f"{where}.carry.column"
            )
    for name, expression in rule.computed.items():
        later = [*rule.computed, *mapping.computed]
        kind = _check(mapping, expression, _row(table, document), f"{where}.computed.{name}", later=later, table=table)
        document[f"{table}.{name}"] = kind


def _check_check(mapping: MappingModel, check: CheckRule, document: Kinds, where: str) -> None:
    names = document
    if check.each is not None:
        if check.each not in mapping.tables:
            raise _missing(check.each, mapping.tables, where, DocumentMessage("mapping.unknown_table"))
        names = _row(check.each, document)
    _check(mapping, check.expect, names, where, wanted=Kind.TRUTH, table=check.each)
    if check.when is not None:
        _check(mapping, check.when, names, f"{where}.when", wanted=Kind.TRUTH, table=check.each)
    for sentence in (check.message or {}).values():
        for used in PLACEHOLDER.findall(sentence):
            if used not in names and used not in ALWAYS_KNOWN:
                raise _missing(used, names, f"{where}.message")


def _check_node(mapping: MappingModel, node: XmlNode, names: Kinds, above: str, table: str | None = None) -> None:
    where = f"{above}.{node.name}"
    if node.each is not None:
        if node.each not in mapping.tables:
            raise _missing(node.each, mapping.tables, where, DocumentMessage("mapping.unknown_table"))
        names, table = _row(node.each, names), node.each
    if node.when is not None:
        _check(mapping, node.when, names, f"{where}.when", wanted=Kind.TRUTH, table=table)
    if node.value is not None:
        _check(mapping, node.value, names, where, table=table)
    for attribute, expression in node.attributes.items():
        _check(mapping, expression, names, f"{where}@{attribute}", table=table)
    for child in node.children:
        _check_node(mapping, child, names, where, table)


def _check(
    mapping: MappingModel,
    expression: Expression,
    names: Kinds,
    where: str,
    *,
    wanted: Kind = Kind.ANY,
    later: Iterable[str] = (),
    table: str | None = None,
) -> Kind:
    for name in sorted(expression.names):
        if name not in names:
            if name.rpartition(".")[2] in later:
                raise MappingFault(DocumentMessage("mapping.not_computed_yet", name=name), where)
            raise _missing(name, names, where)
    for lookup in sorted(expression.lookups):
        if lookup not in mapping.lookups:
            raise _missing(lookup, mapping.lookups, where, DocumentMessage("mapping.unknown_lookup"))
    for carrying in sorted(expression.carrying):
        if carrying not in mapping.tables or mapping.tables[carrying].carry is None:
            raise MappingFault(DocumentMessage("mapping.no_carrying_table", name=carrying), where)
    for column in sorted(expression.spreading):
        if column.partition(".")[0] != table:
            raise MappingFault(DocumentMessage("mapping.spread_outside_rows", name=column), where)
    try:
        return must_give(wanted, expression.tree, names)
    except ExpressionError as error:
        raise MappingFault(error.says, where) from None


def _missing(name: str, known: Mapping[str, object], where: str, says: DocumentMessage | None = None) -> MappingFault:
    near = get_close_matches(name, known, n=1)
    says = says or DocumentMessage("mapping.unknown_name")
    return MappingFault(says.adding(name=name, meant=near[0] if near else None), where)
