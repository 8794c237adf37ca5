"""The document argument of the `mapping` commands, and what happens if the document cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain
from waybill_documents.faults import DocumentRejected, Finding
from waybill_documents.messages import tell

Source = Annotated[
    Path, typer.Argument(metavar="FILE.pdf", exists=True, dir_okay=False, readable=True, help="The document.")
]


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
