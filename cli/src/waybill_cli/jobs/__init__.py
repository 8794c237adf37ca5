"""`waybill jobs`: inspect and change jobs. Each module has one command or a few similar ones."""

from __future__ import annotations

import typer

from waybill_cli.jobs.control import cancel, prioritise, retry
from waybill_cli.jobs.enqueue import enqueue
from waybill_cli.jobs.explain import explain
from waybill_cli.jobs.ls import ls
from waybill_cli.jobs.purge import purge
from waybill_cli.jobs.rm import rm
from waybill_cli.jobs.show import show

app = typer.Typer(
    help="Operate jobs: ls, show, explain, retry, cancel, rm, prioritise, purge, enqueue.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(ls)
app.command("show")(show)
app.command("explain")(explain)
app.command("retry")(retry)
app.command("cancel")(cancel)
app.command("rm")(rm)
app.command("prioritise")(prioritise)
app.command("purge")(purge)
app.command("enqueue")(enqueue)
