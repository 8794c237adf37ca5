"""The `waybill up` command itself; `waybill_cli.main` registers it."""

from __future__ import annotations

import typer

from waybill.config import load


def up() -> None:
    """Run all of Waybill on this machine, in the foreground: database, worker, gateway, API. Ctrl-C stops it.

    Data lies in `.waybill` (WAYBILL_HOME); the database of a root user, whose files the server's own account may not
    enter, lies under /var/lib/waybill, and the start says where. WAYBILL_DATABASE_URL uses a Postgres server of yours
    instead of the embedded one.
    """
    # Here, so that `waybill --help` and the other commands do not pay for what only this one needs.
    from waybill_cli.local.settings import UpSettings
    from waybill_cli.local.tether import die_with_make
    from waybill_cli.local.up import run_everything

    die_with_make()
    raise typer.Exit(run_everything(load(UpSettings)))
