"""`waybill tenant`: how tenants share the workers, how long their things are kept, and forgetting one.

Pipelines bring commands of their own.
"""

from __future__ import annotations

import typer

from waybill.pipelines import installed, resolve
from waybill_cli.tenants.erasure import erase
from waybill_cli.tenants.fair_share import ls, priority, weight
from waybill_cli.tenants.retention import hold, release, retention

_BROUGHT = {name: reference for pipeline in installed() for name, reference in pipeline.tenant_commands.items()}

app = typer.Typer(
    help=f"Look after tenants: {', '.join(['ls, weight, priority, retention, hold, release, erase', *_BROUGHT])}.",
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
for name, reference in _BROUGHT.items():
    app.command(name)(resolve(reference))
