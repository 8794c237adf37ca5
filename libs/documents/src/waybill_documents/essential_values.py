"""Which values of a document matter for its result: those that the XML is made from, and those that are required.

A person is asked to look at a result if one of these is in doubt. Whoever runs the conversion decides below which
confidence that is, so a record only says which values count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from waybill_documents.checks import CheckResult
from waybill_documents.expressions import Expression
from waybill_documents.mapping.model import Mapping, XmlNode
from waybill_documents.values import Extracted, Row


def essential(mapping: Mapping) -> list[str]:
    """The names of these values, as in `number` and `lines.amount`, in the order of the mapping.

    A value that others are computed from counts if one of those does. An embedded invoice has none: it is data, and
    nothing in it was recognised.
    """
    computed = _computed(mapping)
    known = [*mapping.fields, *_columns(mapping), *computed]
    required = [name for name, rule in mapping.fields.items() if rule.required]
    required += [
        f"{table}.{name}"
        for table, rule in mapping.tables.items()
        for name, its in rule.columns.items()
        if its.required
    ]
    written = _written(mapping.xml.root, None) if mapping.xml is not None else ()
    wanted = [*required, *(name for table, each in written for name in _resolved(mapping, table, each))]
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.add(name)
        if name in computed:
            wanted += _resolved(mapping, *computed[name])
    return [name for name in known if name in found]


def disproved(names: Collection[str], extracted: Extracted, results: Iterable[CheckResult]) -> list[str]:
    """The paths of these values that were not read from the document, and that a check does not hold for.

    A default, an empty value or a computed one cannot be misread, but a check can show that it is wrong.
    """
    doubted = dict.fromkeys(path for result in results for path in result.doubted)
    return [path for path in doubted if _name(path) in names and not _raw(extracted, path)]


def _computed(mapping: Mapping) -> dict[str, tuple[str | None, Expression]]:
    """The computed values by their names, with the table in whose rows they are computed."""
    found: dict[str, tuple[str | None, Expression]] = {
        f"{table}.{name}": (table, each)
        for table, rule in mapping.tables.items()
        for name, each in rule.computed.items()
    }
    return found | {name: (None, each) for name, each in mapping.computed.items()}


def _columns(mapping: Mapping) -> Iterator[str]:
    for table, rule in mapping.tables.items():
        yield from (f"{table}.{name}" for name in dict.fromkeys([*rule.columns, *rule.notes]))


def _written(node: XmlNode, table: str | None) -> Iterator[tuple[str | None, Expression]]:
    """The expressions of an element and of those in it, with the table whose rows they are written for."""
    table = node.each or table
    for expression in (node.value, node.when, *node.attributes.values()):
        if expression is not None:
            yield table, expression
    for child in node.children:
        yield from _written(child, table)


def _resolved(mapping: Mapping, table: str | None, expression: Expression) -> Iterator[str]:
    """The names an expression uses. In a row, the table's own columns come first."""
    rule = mapping.tables[table] if table is not None else None
    for name in expression.names:
        of_row = rule is not None and (name in rule.columns or name in rule.notes or name in rule.computed)
        yield f"{table}.{name}" if of_row else name


def _name(path: str) -> str:
    """`lines[3].amount` is a value of `lines.amount`."""
    table, bracket, rest = path.partition("[")
    return f"{table}{rest.partition(']')[2]}" if bracket else path


def _raw(extracted: Extracted, path: str) -> str:
    table, bracket, rest = path.partition("[")
    index, _, column = rest.partition("].")
    values: Row = extracted.tables[table][int(index)] if bracket else extracted.fields
    return values[column or path].raw
