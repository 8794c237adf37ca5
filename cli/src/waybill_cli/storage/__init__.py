"""`waybill storage`: moving documents and results to another place, and whose the storage is."""

from __future__ import annotations

import typer

from waybill_cli.storage.claim import claim
from waybill_cli.storage.migrate import migrate

app = typer.Typer(help="Look after the storage: migrate, claim.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def storage() -> None:
    """Look after the storage: migrate, claim."""


app.command()(migrate)
app.command()(claim)
