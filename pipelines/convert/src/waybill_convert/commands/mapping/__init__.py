"""`waybill mapping`: write, check, try and publish mappings. Only `report` needs a database, some need the API.

Documents are read in this process, without the gateway's sandbox, because they are the user's own files.
"""

from __future__ import annotations

import typer

from waybill_convert.commands.mapping.check import check
from waybill_convert.commands.mapping.correction_report import report_corrections
from waybill_convert.commands.mapping.ls import ls
from waybill_convert.commands.mapping.schema import schema
from waybill_convert.commands.mapping.show import show
from waybill_convert.commands.mapping.tenant_mappings import publish, pull, push, retire, try_samples
from waybill_convert.commands.mapping.text import text
from waybill_convert.commands.mapping.try_command import try_

app = typer.Typer(
    help="Write, try and publish mappings: ls, show, text, check, try, push, test, publish, retire, pull, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(ls)
app.command("show")(show)
app.command("text")(text)
app.command("check")(check)
app.command("try")(try_)
app.command("push")(push)
app.command("test")(try_samples)
app.command("publish")(publish)
app.command("retire")(retire)
app.command("pull")(pull)
app.command("report")(report_corrections)
app.command("schema")(schema)
