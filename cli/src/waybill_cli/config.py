"""`waybill config`: the documents made from the settings classes, printed, written or checked."""

from __future__ import annotations

import typer

from waybill.config import reference as documents
from waybill_cli.generated_file import Check, Write, deliver

app = typer.Typer(help="Show every setting there is: reference, example.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def reference(write: Write = None, check: Check = None) -> None:
    """Print the reference of all settings, as Markdown."""
    deliver(documents.reference(), "config reference", write, check)


@app.command()
def example(write: Write = None, check: Check = None) -> None:
    """Print an example of a .env file: every variable, commented out, with its default."""
    deliver(documents.example(), "config example", write, check)
