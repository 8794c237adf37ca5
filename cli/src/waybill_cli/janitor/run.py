"""`waybill janitor run`: the janitor once, in a process of its own, and out with its exit code."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Annotated

import typer

from waybill.console.database import find_settings
from waybill.console.options import AsJson
from waybill.errors import Refused

_MODULE = "waybill_janitor"


def run(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Compare all of the storage with all rows now, however recently that was done."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what is past its time, return what is stuck, compare storage and rows; one line for each task.

    Exits with 0 when all went well or another janitor is at work, with 1 when a task failed.
    """
    if importlib.util.find_spec(_MODULE) is None:
        raise Refused("The janitor is not installed here. Run: pip install waybill-janitor")
    settings, _ = find_settings()
    flags = [flag for flag, wanted in (("--dry-run", dry_run), ("--all", everything), ("--json", as_json)) if wanted]
    environment = {**os.environ, "WAYBILL_DATABASE_URL": settings.database_url.url}
    # Not imported: the command and the services know each other only by name.
    ended = subprocess.run([sys.executable, "-m", _MODULE, *flags], env=environment, check=False)
    raise typer.Exit(ended.returncode if ended.returncode >= 0 else 128 - ended.returncode)
