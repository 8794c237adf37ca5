"""`waybill schedules`: periodic jobs. There is one module per command; `control` has the small ones."""

from __future__ import annotations

import typer

from waybill_cli.schedules.add import add
from waybill_cli.schedules.control import pause, resume, rm, run
from waybill_cli.schedules.ls import ls
from waybill_cli.schedules.show import show

app = typer.Typer(
    help="Look at periodic jobs: list, show, add, remove, pause, resume, run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(ls)
app.command("show")(show)
app.command("add")(add)
app.command("rm")(rm)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("run")(run)
