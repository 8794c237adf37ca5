"""Suggests texts for a value that the mapping looks up in a list, such as units of measure."""

from __future__ import annotations

from collections.abc import Iterator

from waybill_documents.expressions import Expression
from waybill_documents.expressions.nodes import Call, Constant, Name, TableColumn, walk
from waybill_documents.mapping.loader import LoadedMapping

_ANY_OTHER = "*"


def choices(loaded: LoadedMapping, path: str) -> list[str]:
    """The texts of the look-ups that use this value, in their order; empty if there are none.

    The path is as in findings (`lines[213].unit`), or without a row (`lines.unit`). A person can type another text,
    which then leads to a finding of the look-up.
    """
    head, bracket, rest = path.partition("[")
    name = f"{head}.{rest.partition('].')[2]}" if bracket else path
    mapping = loaded.mapping
    found: dict[str, None] = {}
    for table, rule in mapping.tables.items():
        for expression in rule.computed.values():
            for lookup, used in _lookups(expression):
                local = f"{table}.{used}" if used in rule.columns or used in rule.notes else used
                if local == name:
                    found |= dict.fromkeys(mapping.lookups[lookup])
    for expression in mapping.computed.values():
        for lookup, used in _lookups(expression):
            if used == name:
                found |= dict.fromkeys(mapping.lookups[lookup])
    return [text for text in found if text != _ANY_OTHER]


def _lookups(expression: Expression) -> Iterator[tuple[str, str]]:
    """Each look-up of an expression, with the names whose texts it looks up."""
    for node in walk(expression.tree):
        if isinstance(node, Call) and node.function == "lookup" and isinstance(node.arguments[0], Constant):
            for given in node.arguments[1:2]:
                for part in walk(given):
                    if isinstance(part, Name | TableColumn):
                        yield str(node.arguments[0].value), part.name
