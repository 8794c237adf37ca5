"""`waybill tenant`: how tenants share the workers, how long their things are kept, and forgetting one."""

from __future__ import annotations

import typer

from waybill_cli.tenants.erasing import erase
from waybill_cli.tenants.keeping import hold, release, retention
from waybill_cli.tenants.sharing import ls, priority, weight

app = typer.Typer(
    help="Look after tenants: ls, weight, priority, retention, hold, release, erase.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(ls)
app.command()(weight)
app.command()(priority)
app.command()(retention)
app.command()(hold)
app.command()(release)
app.command()(erase)
