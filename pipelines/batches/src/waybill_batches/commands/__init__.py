"""`waybill batch`: send ZIPs or folders through the API, follow them, and fetch what was read."""

from __future__ import annotations

import typer

from waybill_batches.commands.actions import cancel, delete, download, retry
from waybill_batches.commands.listing import ls, show
from waybill_batches.commands.submit import submit

app = typer.Typer(
    help="Work many documents at once: submit, ls, show, download, retry, cancel, rm.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("submit")(submit)
app.command("ls")(ls)
app.command("show")(show)
app.command("download")(download)
app.command("retry")(retry)
app.command("cancel")(cancel)
app.command("rm")(delete)
