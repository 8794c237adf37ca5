"""The document argument of the `mapping` commands, and what happens if the document cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain
from waybill.files import FileType, detect
from waybill_documents.document_reader import Kind
from waybill_documents.faults import DocumentRejected, Finding
from waybill_documents.messages import tell

Source = Annotated[
    Path,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="A PDF, workbook or CSV file."),
]

_KINDS: dict[FileType, Kind] = {
    FileType.XLSX: "xlsx",
    FileType.DOCX: "docx",
    FileType.TEXT: "text",
    FileType.XML: "xml",
}


def kind_of(source: Path) -> Kind:
    """What a file is, by its content. What is nothing else is read as a PDF, whose reader says what is wrong."""
    with source.open("rb") as file:
        return _KINDS.get(detect(file), "pdf")


@contextmanager
def faults_end() -> Iterator[None]:
    """End the command with the message of a document's fault."""
    try:
        yield
    except DocumentRejected as fault:
        complain(fault.message)
        raise typer.Exit(ExitCode.REFUSED) from fault


def finding_text(finding: Finding, language: str) -> str:
    """A finding's message in the given language, or in English if there is no translation."""
    return tell(finding, language)
