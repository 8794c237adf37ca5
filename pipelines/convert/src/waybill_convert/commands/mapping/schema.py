"""`waybill mapping schema`: prints the JSON Schema of the mapping language, writes it or checks a file against it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain
from waybill_documents.mapping.json_schema import as_text


def schema(
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to this file.")] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Exit with 1 unless this file is up to date.")
    ] = None,
) -> None:
    """Print the JSON Schema of the mapping language, for editors."""
    text = as_text()
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(text, encoding="utf-8")
    if check is not None and (check.read_text(encoding="utf-8") if check.exists() else "") != text:
        complain(f"{check} does not match the mapping language. Run: waybill mapping schema --write {check}")
        raise typer.Exit(ExitCode.REFUSED)
    if write is None and check is None:
        typer.echo(text, nl=False)
