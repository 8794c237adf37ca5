"""`waybill mapping`: write, check and try mappings. One module per command; only `report` needs a database.

A document is read in this process, without the gateway's sandbox: it is the user's own file, on the user's machine.
"""

from __future__ import annotations

import typer

from waybill_convert.commands.mapping.check import check
from waybill_convert.commands.mapping.correction_report import report_corrections
from waybill_convert.commands.mapping.ls import ls
from waybill_convert.commands.mapping.schema import schema
from waybill_convert.commands.mapping.show import show
from waybill_convert.commands.mapping.text import text
from waybill_convert.commands.mapping.try_command import try_

app = typer.Typer(
    help="Look at mappings, write one and try it: list, show, text, check, try, report, schema.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(ls)
app.command("show")(show)
app.command("text")(text)
app.command("check")(check)
app.command("try")(try_)
app.command("report")(report_corrections)
app.command("schema")(schema)
