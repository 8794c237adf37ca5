"""Writes data as the XML document that the mapping describes. This is the last stage.

Elements are written directly as text, which is much faster than building them with lxml. The result is then parsed by
lxml, which proves that it is well-formed, and validated if there is a schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from lxml import etree

from waybill_documents.expressions import Expression, Scope
from waybill_documents.expressions.nodes import Name
from waybill_documents.faults import DocumentRejected, FaultCode, Finding, MappingFault
from waybill_documents.mapping.model import Mapping, XmlNode, XmlRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.value_text import reader
from waybill_documents.xml_output.safe_xml import parse
from waybill_documents.xml_output.validation import MOST_FINDINGS, Origin, XmlSchema, not_more_than
from waybill_documents.xml_output.value_spelling import DECLARATION, TELLING, NotForXml, escape, escape_attribute, spell

_DEEPEST = 50
"""No format we know nests deeper; libxml2 would stop at 256."""


def render(mapping: Mapping, data: dict[str, Any], *, pretty: bool, schema: XmlSchema | None) -> bytes:
    """The XML document, in UTF-8 with its declaration.

    Raises DocumentRejected BAD_VALUE for values that XML cannot hold, and INVALID_XML if the schema is not met.
    """
    if mapping.xml is None:
        raise MappingFault(DocumentMessage("mapping.no_xml"), "xml")
    body = _write(mapping, data, pretty=pretty).body()
    root = parse(body)
    if schema is not None and not schema.fits(root):
        # Findings refer to lines, so they are made from the indented form; a compact document has only one line.
        shown = _write(mapping, data, pretty=True, explained=True)
        schema.explain(parse(shown.body()), shown.origins or ())
    return body


def check_tree(mapping: Mapping) -> None:
    """Refuse a tree that cannot be written, when the mapping is loaded."""
    if mapping.xml is not None:
        _check(mapping.xml.root, mapping, mapping.xml, "xml.root", each=None, depth=1)


def _check(node: XmlNode, mapping: Mapping, xml: XmlRule, where: str, *, each: str | None, depth: int) -> None:
    if depth > _DEEPEST:
        raise MappingFault(DocumentMessage("mapping.xml.too_deep", most=_DEEPEST), where)
    for name in (node.name, *node.attributes):
        prefix, _, plain = name.rpartition(":")
        if prefix and prefix != "xml" and prefix not in xml.namespaces:
            raise MappingFault(DocumentMessage("mapping.xml.unknown_prefix", prefix=prefix, name=name), where)
        if name == "xmlns" or prefix == "xmlns":
            raise MappingFault(DocumentMessage("mapping.xml.namespace_attribute"), where)
        try:
            etree.QName(plain)
        except ValueError:
            raise MappingFault(DocumentMessage("mapping.xml.bad_name", name=name), where) from None
    if node.each is not None:
        if depth == 1:
            raise MappingFault(DocumentMessage("mapping.xml.repeated_root"), where)
        if each is not None:
            raise MappingFault(DocumentMessage("mapping.xml.repeated_twice"), where)
        if node.each not in mapping.tables:
            raise MappingFault(DocumentMessage("mapping.unknown_table", name=node.each), where)
    for place, child in enumerate(node.children):
        _check(child, mapping, xml, f"{where}.children[{place}]", each=each or node.each, depth=depth + 1)


@dataclass(slots=True)
class _Row:
    """The current position in the data: a row of a table, or the document itself."""

    scope: Scope
    table: str | None = None
    index: int | None = None


@dataclass(slots=True)
class _Written:
    """The document while it is written, with its findings."""

    parts: list[str] = field(default_factory=list)
    origins: list[Origin] | None = None
    """What each element was written from, in document order. Kept only to explain what does not fit the schema."""
    findings: list[Finding] = field(default_factory=list)

    def body(self) -> bytes:
        return "".join([DECLARATION, *self.parts]).rstrip("\n").encode() + b"\n"


class _Element:
    """One node of the mapping's tree, with everything prepared that does not depend on the data."""

    __slots__ = (
        "attributes", "children", "close", "column", "each", "empty", "end", "name", "omit", "open", "simple", "start",
        "value", "when",
    )  # fmt: skip

    def __init__(self, node: XmlNode, depth: int, *, pretty: bool, declared: str = "") -> None:
        self.name = node.name
        self.value = node.value
        self.when = node.when
        tree = node.value.tree if node.value is not None else None
        self.column = tree.name if isinstance(tree, Name) else None
        """The name of the value that it shows as it is."""
        self.each = node.each
        self.omit = node.omit_empty
        self.attributes = tuple(node.attributes.items())
        self.children = tuple(_Element(child, depth + 1, pretty=pretty) for child in node.children)
        indent, self.end = ("  " * depth, "\n") if pretty else ("", "")
        self.start = f"{indent}<{node.name}{declared}"
        self.open = f"{self.start}>"
        self.empty = f"{self.start}/>{self.end}"
        self.close = f"{indent if node.children else ''}</{node.name}>{self.end}"
        self.simple = not (node.each or node.when or node.attributes or node.children or node.omit_empty)
        """Whether it has only a value. Most elements of a long document do, so they have a faster path."""

    def _write_plain(self, parts: list[str], scope: Scope) -> bool:
        """Write an element that has only a value, with as few calls as possible. Returns False if it needs `write`."""
        if self.value is None:
            return False
        name, cells = self.column, scope.row
        value = cells[name] if name is not None and cells is not None and name in cells else self.value.evaluate(scope)
        if type(value) is Decimal:
            text = str(value)
            if not value or not value.is_finite() or "E" in text:
                return False
        elif type(value) is str and TELLING.search(value) is None:
            text = value
        else:
            return False
        if scope.misses:
            return False
        parts.append(f"{self.open}{text}{self.close}" if text else self.empty)
        return True

    def write(self, out: _Written, row: _Row, data: dict[str, Any]) -> bool:
        """Write the element, once or for each row. Returns whether anything was written."""
        if self.simple:
            text = self._text(out, row)
            out.parts.append(f"{self.open}{text}{self.close}" if text else self.empty)
            if out.origins is not None:
                out.origins.append(self._origin(row))
            return True
        if self.each is None:
            return self._write_once(out, row, data)
        written = False
        for index, cells in enumerate(data.get(self.each) or ()):
            written |= self._write_once(out, _Row(row.scope.with_row(cells, index), self.each, index), data)
        return written

    def _write_once(self, out: _Written, row: _Row, data: dict[str, Any]) -> bool:
        if self.when is not None and not self.when.holds(row.scope):
            return False
        text = self._text(out, row)
        if self.omit and not text and not self.children:
            return False
        before = len(out.parts), len(out.origins or ())
        if out.origins is not None:
            out.origins.append(self._origin(row))
        start = self._with_attributes(out, row) if self.attributes else self.start
        if text:
            out.parts.append(f"{start}>{text}{self.close}")
            return True
        # Whether it is empty is only known after its children. In that case, its start is removed again.
        out.parts.append(f"{start}>{self.end}")
        written, is_quick = False, out.origins is None
        for child in self.children:
            if is_quick and child.simple and child._write_plain(out.parts, row.scope):
                written = True
            else:
                written |= child.write(out, row, data)
        if written:
            out.parts.append(self.close)
            return True
        del out.parts[before[0] :]
        if self.omit:
            if out.origins is not None:
                del out.origins[before[1] :]
            return False
        out.parts.append(f"{start}/>{self.end}")
        return True

    def _with_attributes(self, out: _Written, row: _Row) -> str:
        start = self.start
        for name, value in self.attributes:
            text = _spelt(out, row, value, f"{self.name}/@{name}", escape_attribute)
            if text:
                start += f' {name}="{text}"'
        return start

    def _text(self, out: _Written, row: _Row) -> str:
        return _spelt(out, row, self.value, self.name, escape) if self.value is not None else ""

    def _origin(self, row: _Row) -> Origin:
        return Origin(self.name, row.table, row.index, _only_name(self.value))


def _spelt(out: _Written, row: _Row, expression: Expression, name: str, escaped: Callable[[str], str]) -> str:
    value = expression.evaluate(row.scope)
    try:
        text = escaped(value) if type(value) is str else spell(value)
    except NotForXml as why:
        out.findings.append(_unwritable(row, name, expression, why.says))
        return ""
    if row.scope.misses:
        miss = row.scope.misses.pop()
        row.scope.misses.clear()
        if miss.why is not None:
            reason, fault = DocumentMessage("xml.unreadable", why=miss.why), FaultCode.BAD_VALUE
        else:
            reason = DocumentMessage("xml.unknown_lookup", lookup=miss.lookup, text=miss.text)
            fault = FaultCode.UNKNOWN_LOOKUP
        out.findings.append(_unwritable(row, name, expression, reason, fault))
    return text


def _write(mapping: Mapping, data: dict[str, Any], *, pretty: bool, explained: bool = False) -> _Written:
    xml = mapping.xml
    assert xml is not None  # noqa: S101 - render() has looked
    declared = "".join(
        f' xmlns{":" if prefix else ""}{prefix}="{escape_attribute(address)}"'
        for prefix, address in xml.namespaces.items()
    )
    written = _Written(origins=[] if explained else None)
    root = _Element(xml.root, 0, pretty=pretty, declared=declared)
    root.write(written, _Row(Scope(data, mapping.lookups, reader=reader(mapping.locale))), data)
    if written.findings:
        findings = not_more_than(MOST_FINDINGS, written.findings)
        raise DocumentRejected(findings[0].code, DocumentMessage("xml.unwritable_values"), findings)
    return written


def _unwritable(
    row: _Row, name: str, value: Expression, why: DocumentMessage, fault: FaultCode = FaultCode.BAD_VALUE
) -> Finding:
    line = row.index + 1 if row.index is not None else None
    message = DocumentMessage("xml.unwritable", element=name, line=line, why=why)
    return Finding(fault, message, Origin(name, row.table, row.index, _only_name(value)).path, "xml")


def _only_name(value: Expression | None) -> str | None:
    """The name of the value that an element shows, if it shows exactly one."""
    names = value.names if value is not None else frozenset()
    return next(iter(names)) if len(names) == 1 else None
