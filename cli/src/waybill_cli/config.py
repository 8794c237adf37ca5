"""`waybill config`: the documents made from the settings classes, printed, written or checked."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from waybill.config import reference as documents

app = typer.Typer(help="Show every setting there is: reference, example.", no_args_is_help=True, rich_markup_mode=None)

Write = Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to this file.")]
Check = Annotated[Path | None, typer.Option(metavar="FILE", help="Exit with 1 unless this file is up to date.")]


@app.command()
def reference(write: Write = None, check: Check = None) -> None:
    """Print the reference of all settings, as Markdown."""
    _deliver(documents.reference(), "reference", write, check)


@app.command()
def example(write: Write = None, check: Check = None) -> None:
    """Print an example of a .env file: every variable, commented out, with its default."""
    _deliver(documents.example(), "example", write, check)


def _deliver(text: str, command: str, write: Path | None, check: Path | None) -> None:
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
    difference = unified_diff(written.splitlines(), text.splitlines(), str(path), "settings", n=0, lineterm="")
    typer.echo("\n".join(difference), err=True)
    typer.echo(f"{path} does not match the settings. Run: waybill config {command} --write {path}", err=True)
    raise typer.Exit(1)
