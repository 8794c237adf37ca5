"""Reads Word documents: the visible text, in the order of the document, as one page.

A docx has no pages; Word makes them for display. python-docx opens the package and finds the parts. The text comes from
the XML itself, because python-docx's `text` leaves out tracked insertions, content controls and text boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.list_numbers import Numbering, value, whole
from waybill_documents.office.office_limits import Budget, OfficeLimits
from waybill_documents.office.package import Package, damaged, open_package
from waybill_documents.plain_document import PlainDocument, PlainPage, PlainTable

_MOST_COLUMNS = 63
"""Word's own limit; wider spans are invalid."""
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"
_WRAPPERS = {qn(name) for name in ("w:sdt", "w:sdtContent", "w:ins", "w:moveTo", "w:customXml", "w:smartTag")}
_UNSEEN = {qn(name) for name in ("w:del", "w:moveFrom", "w:instrText", "w:delText", "w:rPr", "w:pPr", "w:sdtPr")}
_BREAKS = {
    qn("w:tab"): "\t",
    qn("w:ptab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}
_TEXTS, _BOX = {qn("w:t"), qn("m:t")}, qn("w:txbxContent")
_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_MAIN = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_LIKE_MAIN = (
    b"application/vnd.ms-word.document.macroEnabled.main+xml",
    b"application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    b"application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
)


def read_word(path: Path, limits: OfficeLimits | None = None) -> PlainDocument:
    """The text and tables of a docx, docm or dotx; macros are ignored."""
    limits = limits or OfficeLimits()
    package = open_package(path, limits)
    if sum(content.count(b"<") - content.count(b"</") for content in package.parts.values()) > limits.elements:
        raise DocumentRejected(
            FaultCode.TOO_MUCH_TEXT, DocumentMessage("office.too_many_elements", most=limits.elements)
        )
    document = _opened(package)
    reader = _BodyReader(_numbering(document), Budget(limits))
    heads, feet = _around(document)
    lines = [line for part in heads for line in reader.lines(part)]
    lines += reader.lines(document.element.body)
    lines += [line for part in (*_notes(package), *feet) for line in reader.lines(part)]
    page = PlainPage(number=1, text="\n".join(lines))
    return PlainDocument(
        kind="docx", pages=(page,), tables=tuple(PlainTable(page=1, rows=rows) for rows in reader.tables)
    )


def _opened(package: Package) -> Document:
    types = package["[Content_Types].xml"]
    for like_main in _LIKE_MAIN:
        types = types.replace(like_main, _MAIN)
    package.parts["[Content_Types].xml"] = types
    try:
        document = docx.Document(package.repacked())
        has_text = document.element.body is not None
    except Exception as error:  # any error of python-docx means that the file is damaged
        raise damaged() from error
    if not has_text:
        raise damaged(DocumentMessage("office.damage.no_text_part"))
    return document


def _numbering(document: Document) -> Numbering:
    found: dict[str, Any] = {}
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype in (RELATIONSHIP_TYPE.NUMBERING, RELATIONSHIP_TYPE.STYLES):
            found[relation.reltype] = getattr(relation.target_part, "element", None)
    return Numbering(found.get(RELATIONSHIP_TYPE.NUMBERING), found.get(RELATIONSHIP_TYPE.STYLES))


def _around(document: Document) -> tuple[list[Any], list[Any]]:
    """The headers and the footers, each once, in the order of the sections."""
    found: dict[str, dict[str, Any]] = {"headerReference": {}, "footerReference": {}}
    for kind, parts in found.items():
        for reference in document.element.body.iter(qn(f"w:{kind}")):
            relation = document.part.rels.get(reference.get(qn("r:id")) or "")
            if relation is None or relation.is_external:
                continue
            element = getattr(relation.target_part, "element", None)
            if element is not None:
                parts.setdefault(str(relation.target_part.partname), element)
    return list(found["headerReference"].values()), list(found["footerReference"].values())


def _notes(package: Package) -> Iterator[Any]:
    """Footnotes and endnotes; their separators have a type, real notes have none."""
    for name, tag in (("word/footnotes.xml", "w:footnote"), ("word/endnotes.xml", "w:endnote")):
        if name not in package.parts:
            continue
        try:
            notes = parse_xml(package.parts[name])
        except (SyntaxError, ValueError) as error:
            raise damaged(DocumentMessage("office.damage.part_broken", part=name)) from error
        yield from (note for note in notes.iter(qn(tag)) if note.get(qn("w:type")) in (None, "normal"))


class _BodyReader:
    """Walks the document once, in its order, and collects tables; an outer table comes before those in it."""

    def __init__(self, numbering: Numbering, budget: Budget) -> None:
        self.tables: list[list[list[str]]] = []
        self._numbering = numbering
        self._budget = budget

    def lines(self, container: Any) -> list[str]:
        """The lines of a body, a header, a cell or a text box."""
        lines: list[str] = []
        for block in _blocks(container):
            if block.tag == _PARAGRAPH:
                lines += self._paragraph(block)
            else:
                lines += ["\t".join(" ".join(cell.split("\n")) for cell in row) for row in self._table(block)]
        return lines

    def _paragraph(self, paragraph: Any) -> list[str]:
        boxes: list[Any] = []
        text = "".join(_pieces(paragraph, boxes)).strip("\n")
        label = self._numbering.label(paragraph) if text.strip() else None
        if label:
            text = f"{label} {text}"
        self._budget.spend(len(text) + 1)
        lines = [line.rstrip() for line in text.split("\n")] if text.strip() else []
        for box in boxes:
            lines += self.lines(box)
        return lines

    def _table(self, table: Any) -> list[list[str]]:
        rows: list[list[str]] = []
        # Appended before the tables in it, and filled afterwards.
        self.tables.append(rows)
        for row in _inside(table, _ROW):
            cells = self._row(row)
            self._budget.spend(sum(map(len, cells)) + len(cells))
            rows.append(cells)
        width = max(map(len, rows), default=0)
        self._budget.spend(sum(width - len(row) for row in rows))
        for cells in rows:
            cells += [""] * (width - len(cells))
        if not any(any(row) for row in rows):
            self.tables = [known for known in self.tables if known is not rows]
        return rows

    def _row(self, row: Any) -> list[str]:
        cells = _empty(row, "w:gridBefore")
        for cell in _inside(row, _CELL):
            properties = cell.find(qn("w:tcPr"))
            merged = None if properties is None else properties.find(qn("w:vMerge"))
            goes_on = merged is not None and merged.get(qn("w:val")) != "restart"
            span = min(max(whole(value(properties, "w:gridSpan"), 1), 1), _MOST_COLUMNS)
            cells.append("" if goes_on else "\n".join(self.lines(cell)))
            cells += [""] * (span - 1)
            if len(cells) > _MOST_COLUMNS * 4:
                raise damaged(DocumentMessage("office.damage.too_many_columns"))
        return cells + _empty(row, "w:gridAfter")


def _empty(row: Any, side: str) -> list[str]:
    """The empty columns at one end of a row."""
    return [""] * min(whole(value(row.find(qn("w:trPr")), side), 0), _MOST_COLUMNS)


def _blocks(container: Any) -> Iterator[Any]:
    """Paragraphs and tables, also those inside content controls and insertions."""
    for child in _seen(container):
        if child.tag in (_PARAGRAPH, _TABLE):
            yield child
        elif child.tag in _WRAPPERS:
            yield from _blocks(child)


def _inside(container: Any, tag: str) -> Iterator[Any]:
    """The rows of a table or the cells of a row."""
    for child in _seen(container):
        if child.tag == tag:
            if not _is_deleted(child):
                yield child
        elif child.tag in _WRAPPERS:
            yield from _inside(child, tag)


def _is_deleted(row: Any) -> bool:
    properties = row.find(qn("w:trPr"))
    return properties is not None and properties.find(qn("w:del")) is not None


def _seen(element: Any) -> Iterator[Any]:
    """The children; of several alternatives, only the first."""
    for child in element.iterchildren("*"):
        if child.tag == _ALTERNATIVES:
            chosen = child.find(_CHOICE)
            yield from _seen(chosen if chosen is not None else child)
        else:
            yield child


def _pieces(element: Any, boxes: list[Any]) -> Iterator[str]:
    """The text of a paragraph, piece by piece. Text boxes anchored in it are collected for later."""
    for child in _seen(element):
        tag = child.tag
        if tag in _TEXTS:
            yield child.text or ""
        elif tag in _BREAKS:
            yield _BREAKS[tag]
        elif tag == _BOX:
            boxes.append(child)
        elif tag not in _UNSEEN:
            yield from _pieces(child, boxes)
