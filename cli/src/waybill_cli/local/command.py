"""The `waybill up` command."""

from __future__ import annotations

import typer


def up() -> None:
    """Run all of Waybill on this machine, in the foreground: database, worker, gateway, API. Ctrl-C stops it.

    Data is kept in `.waybill` (WAYBILL_HOME). For root, whose folders the server's own account may not enter, the
    database is kept under /var/lib/waybill, and the start prints where. Set WAYBILL_DATABASE_URL to use your own
    Postgres server instead of the embedded one.
    """
    # Imported here, so that `waybill --help` and the other commands do not pay for what only this one needs.
    from waybill_cli.local.settings import load_settings
    from waybill_cli.local.tether import die_with_make
    from waybill_cli.local.up import run_everything

    die_with_make()
    raise typer.Exit(run_everything(*load_settings()))
