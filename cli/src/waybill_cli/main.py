"""The entry point of the `waybill` command. `group` lists the commands and their modules."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from waybill.console.exits import EXPLAINED
from waybill.termination import heed_sigterm
from waybill_cli.group import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    epilog=EXPLAINED,
    rich_markup_mode=None,
    # Only bugs end in a traceback, and the plain one is easier to paste into a report.
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
    """Run Waybill on this machine, and operate its jobs, queues and workers.

    Commands use the database of WAYBILL_DATABASE_URL or, if that is not set, of the `make up` that runs in this folder.
    Data goes to standard output, hints and errors go to standard error. With `--json`, the data is JSON.
    """
    del version  # its callback has printed it


def main() -> None:
    """The entry point of the executable."""
    heed_sigterm()
    for stream in (sys.stdout, sys.stderr):
        # An ASCII-only terminal must show other characters as escapes, not end in a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="waybill")
