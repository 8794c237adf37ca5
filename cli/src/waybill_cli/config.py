"""`waybill config`: the configuration reference, printed, written or checked against what is written."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from waybill.config import reference as configuration_reference

app = typer.Typer(help="What Waybill can be told, and how.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def config() -> None:
    """What Waybill can be told, and how."""


@app.command()
def reference(
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it to this file.")] = None,
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="Exit with 1 unless this file is current.")] = None,
) -> None:
    """Every setting there is, as Markdown."""
    text = configuration_reference()
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(text, encoding="utf-8")
    if check is not None:
        _check(check, text)
    if write is None and check is None:
        typer.echo(text, nl=False)


def _check(path: Path, text: str) -> None:
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    if written == text:
        return
    difference = unified_diff(written.splitlines(), text.splitlines(), str(path), "settings", n=0, lineterm="")
    typer.echo("\n".join(difference), err=True)
    typer.echo(f"{path} does not match the settings. Run: waybill config reference --write {path}", err=True)
    raise typer.Exit(1)
