"""A text that a command generates: printed, written to a file, or compared with one (`--write`, `--check`)."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

Write = Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to this file.")]
Check = Annotated[Path | None, typer.Option(metavar="FILE", help="Exit with 1 unless this file is up to date.")]


def deliver(text: str, command: str, write: Path | None, check: Path | None) -> None:
    """Do what the options of `waybill <command>` ask for; without any, print the text."""
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(text, encoding="utf-8")
    if check is not None:
        _check(check, text, command)
    if write is None and check is None:
        typer.echo(text, nl=False)


def _check(path: Path, text: str, command: str) -> None:
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    if written == text:
        return
    difference = unified_diff(
        written.splitlines(), text.splitlines(), str(path), f"waybill {command}", n=0, lineterm=""
    )
    typer.echo("\n".join(difference), err=True)
    typer.echo(f"{path} is out of date. Run: waybill {command} --write {path}", err=True)
    raise typer.Exit(1)
