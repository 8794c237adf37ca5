"""`waybill mapping try`: shows what a mapping makes of a document, with all you need to improve it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.human_units import size
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, remark
from waybill_convert.commands.mapping.document_argument import Source
from waybill_convert.commands.mapping.selection import Given, choose, explained
from waybill_convert.commands.mapping.trial import attempt
from waybill_convert.commands.mapping.trial_page import page_of
from waybill_convert.commands.mapping.trial_report import print_report
from waybill_documents.messages import LanguageCode


def try_(
    file: Source,
    mapping: Given,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT.html", help="Draw the values on the pages, as one HTML file.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT.xml", help="Write the XML to this file.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows to show from each end of a table.")] = 3,
    language: Annotated[LanguageCode, typer.Option("--lang", help="The language of the checks' messages.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Read a document with a mapping, and report the result.

    The report shows what was found, what is wrong and how long it took. The file is read in this process, as your user.
    Exits with 1 if the document is at fault, and with 2 if the mapping is.
    """
    chosen = choose(mapping)
    with explained(chosen):
        trial = attempt(file, chosen.load())
    if as_json:
        print_json(trial.to_json())
    else:
        print_report(trial, rows=rows, language=language)
    if html is not None:
        _write(html, page_of(trial, language=language).encode())
    if output is not None and trial.xml is not None:
        _write(output, trial.xml)
    if trial.fault is not None:
        raise typer.Exit(ExitCode.REFUSED)


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from error
    remark(f"Wrote {path} ({size(len(content))}).")
