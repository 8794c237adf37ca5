"""`waybill janitor`: cleaning up once, and what the last runs did."""

from __future__ import annotations

import typer

from waybill_cli.janitor.history import history
from waybill_cli.janitor.run import run

app = typer.Typer(help="Clean up: run, history.", no_args_is_help=True, rich_markup_mode=None)
app.command()(run)
app.command()(history)
