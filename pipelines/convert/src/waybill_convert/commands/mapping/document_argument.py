"""The document on the command line: how it is named, and what happens when it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain
from waybill_documents.faults import DocumentFault, Finding
from waybill_documents.messages import tell

Source = Annotated[
    Path, typer.Argument(metavar="FILE.pdf", exists=True, dir_okay=False, readable=True, help="The document.")
]


@contextmanager
def faults_end() -> Iterator[None]:
    """A document at fault ends the command with its sentence."""
    try:
        yield
    except DocumentFault as fault:
        complain(fault.message)
        raise typer.Exit(ExitCode.REFUSED) from fault


def said(finding: Finding, language: str) -> str:
    """The finding's sentence in a language, or in English where there is no other."""
    return tell(finding, language)
