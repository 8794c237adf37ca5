"""The `waybill` command. What it can do is listed in `group`; each command lives in the module named there."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from waybill.console.exits import EXPLAINED
from waybill_cli.group import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    epilog=EXPLAINED,
    rich_markup_mode=None,
    # Only bugs end in a traceback, and the plain one is the one to paste into a report.
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from waybill_cli.version import version

        version()
        raise typer.Exit


@app.callback()
def waybill(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run Waybill on this machine, and look after its jobs, queues and workers.

    Commands find the database through WAYBILL_DATABASE_URL or, without it, the `make up` that runs in this folder.
    `--json` prints data for programs; it goes to standard output, remarks and errors to standard error.
    """
    del version  # its callback has done the work


def main() -> None:
    """The entry point of the executable."""
    for stream in (sys.stdout, sys.stderr):
        # An ASCII-only terminal shows what it cannot print as an escape instead of ending in a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="waybill")
