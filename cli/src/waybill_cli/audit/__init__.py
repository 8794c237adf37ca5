"""`waybill audit`: who did what, and whether anybody has tampered with the record of it."""

from __future__ import annotations

import typer

from waybill_cli.audit.key import key
from waybill_cli.audit.ls import ls
from waybill_cli.audit.verify import verify

app = typer.Typer(help="Read and check the audit trail: ls, verify, key.", no_args_is_help=True, rich_markup_mode=None)
app.command()(ls)
app.command()(verify)
app.command()(key)
