"""`waybill mapping text`: the lines of a document as a mapping sees them, to write a mapping from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, styled
from waybill_convert.commands.mapping.document_argument import Source, faults_end, kind_of
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.text_lines import lines_of, segments

_GAP = " │ "


def text(
    file: Source,
    page: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this page, or this sheet.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the lines of a document as a mapping sees them.

    `│` marks a wide gap between two segments of a line. The cells of a workbook or a CSV file have their names.
    """
    read = _pages if kind_of(file) == "pdf" else _sheets
    found: list[dict[str, Any]] = []
    with faults_end():
        for title, each, lines in read(file, page):
            if as_json:
                found.append(each)
                continue
            print_line(styled(title, "dim"))
            for line in lines:
                print_line(styled(_GAP.join(line)))
    if as_json:
        print_json(found)


Shown = tuple[str, dict[str, Any], list[list[str]]]
"""A page or a sheet: its title, itself as JSON, and its lines."""


def _pages(file: Path, only: int | None) -> Iterator[Shown]:
    with opened(file, PdfLimits()) as document:
        for page in pages(document, PdfLimits()):
            if only in (None, page.number):
                lines = [
                    [" ".join(word.text for word in part) for part in segments(line.words)] for line in lines_of(page)
                ]
                yield f"page {page.number} of {len(document)}", {"page": page.number, "lines": lines}, lines


def _sheets(file: Path, only: int | None) -> Iterator[Shown]:
    # Imported here, because reading Office files takes a third of a second to import.
    from waybill_documents.sheets.cell_texts import cell_texts

    for sheet in cell_texts(file):
        if only in (None, sheet.number):
            hidden = ", hidden" if sheet.hidden else ""
            name = f" “{sheet.name}”" if sheet.name is not None else ""
            rows = [[{"cell": name, "text": shown} for name, shown in row] for row in sheet.rows]
            lines = [[f"{name} {shown}" for name, shown in row] for row in sheet.rows]
            yield (
                f"sheet {sheet.number} of {sheet.count}{name}{hidden}",
                {"sheet": sheet.number, "name": sheet.name, "hidden": sheet.hidden, "rows": rows},
                lines,
            )
