"""`waybill tenant`: how tenants share the workers, how long their things are kept, and forgetting one."""

from __future__ import annotations

import typer

from waybill_cli.tenants.erasure import erase
from waybill_cli.tenants.fair_share import ls, priority, weight
from waybill_cli.tenants.retention import hold, release, retention

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
