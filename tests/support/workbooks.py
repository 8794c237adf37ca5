"""Writes Excel workbooks and Word packages by hand, also such as Excel and Word would never write."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"

STYLES = {"date": 1, "moment": 2, "time": 3, "duration": 4}
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><numFmts><numFmt numFmtId="170" formatCode="[h]:mm:ss"/></numFmts><cellXfs>'
    + "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 21, 170))
    + "</cellXfs></styleSheet>"
)

Cell = str | int | float | bool | None | tuple[float, str]
"""A tuple is a number and the name of a style."""


def column(number: int) -> str:
    """The letters of a column: 0 is A, 26 is AA."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def cell(value: Cell, row: int, at: int) -> str:
    place = f"{column(at)}{row + 1}"
    match value:
        case None:
            return ""
        case bool():
            return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
        case str() if value.startswith("#"):
            return f'<c r="{place}" t="e"><v>{escape(value)}</v></c>'
        case str():
            return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        case (number, style):
            return f'<c r="{place}" s="{STYLES[style]}"><v>{number!r}</v></c>'
        case _:
            return f'<c r="{place}"><v>{value!r}</v></c>'


def sheet(rows: Sequence[Sequence[Cell]], merged: Sequence[str] = ()) -> str:
    body = "".join(
        f'<row r="{row + 1}">{"".join(cell(value, row, at) for at, value in enumerate(values))}</row>'
        for row, values in enumerate(rows)
    )
    spans = "".join(f'<mergeCell ref="{span}"/>' for span in merged)
    return sheet_xml(body, f"<mergeCells>{spans}</mergeCells>" if spans else "")


def sheet_xml(body: str, after: str = "") -> str:
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData>{after}</worksheet>'


def workbook_parts(
    sheets: Mapping[str, str], *, hidden: Sequence[str] = (), strings: str | None = None
) -> dict[str, str | bytes]:
    """The parts of a workbook from its sheets' XML."""
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" state="{_state(name, hidden)}" r:id="rId{number}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    relations = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, len(sheets) + 1)
    )
    relations += f'<Relationship Id="styles" Type="{_RELATIONS}/styles" Target="styles.xml"/>'
    if strings is not None:
        relations += f'<Relationship Id="strings" Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
    return {
        "[Content_Types].xml": (
            f'<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1"'
            f' Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>'),
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>',
        "xl/styles.xml": _STYLES,
        **({} if strings is None else {"xl/sharedStrings.xml": strings}),
        **{f"xl/worksheets/sheet{number}.xml": xml for number, xml in enumerate(sheets.values(), start=1)},
    }


def _state(name: str, hidden: Sequence[str]) -> str:
    return "hidden" if name in hidden else "visible"


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpacked(package: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def strict(package: bytes) -> bytes:
    """The same package as "Strict Open XML": other namespaces and relationships, as Office writes them on demand."""
    names = re.compile(rb"http://schemas\.openxmlformats\.org/(wordprocessingml|spreadsheetml|officeDocument)/2006/")
    parts = unpacked(package).items()
    return packed({name: names.sub(rb"http://purl.oclc.org/ooxml/\1/", _bytes(content)) for name, content in parts})


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def save(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    path.write_bytes(packed(parts))
    return path
