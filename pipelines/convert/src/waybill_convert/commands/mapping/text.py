"""`waybill mapping text`: the lines of a PDF as a mapping sees them, to write a mapping from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, styled
from waybill_convert.commands.mapping.document_argument import Source, faults_end
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.text_lines import lines_of, segments

_GAP = " │ "


def text(
    file: Source,
    page: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the lines of a PDF as a mapping sees them.

    `│` marks a wide gap between two segments of a line.
    """
    found: list[dict[str, object]] = []
    with faults_end(), opened(Path(file), PdfLimits()) as document:
        for each in pages(document, PdfLimits()):
            if page is not None and each.number != page:
                continue
            lines = [[" ".join(word.text for word in part) for part in segments(line.words)] for line in lines_of(each)]
            if as_json:
                found.append({"page": each.number, "lines": lines})
                continue
            print_line(styled(f"page {each.number} of {len(document)}", "dim"))
            for line in lines:
                print_line(styled(_GAP.join(line)))
    if as_json:
        print_json(found)
