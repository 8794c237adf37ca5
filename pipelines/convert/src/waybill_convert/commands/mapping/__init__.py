"""`waybill mapping`: write, check and try mappings. Each command has a module; only `report` needs a database.

Documents are read in this process, without the gateway's sandbox, because they are the user's own files.
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
    help="Write and try mappings: ls, show, text, check, try, report, schema.",
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
