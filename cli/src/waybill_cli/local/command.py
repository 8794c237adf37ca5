"""The `waybill up` command."""

from __future__ import annotations

from typing import Annotated

import typer


def up(
    observe: Annotated[
        bool, typer.Option("--observe", help="Also run the Prometheus and the Jaeger of this machine, to look at it.")
    ] = False,
) -> None:
    """Run all of Waybill on this machine, in the foreground: database, worker, gateway, API. Ctrl-C stops it.

    Postgres, worker, gateway, janitor and API are supervised. Whichever of them dies is started again after half a
    second, and after up to five seconds if it dies again and again. A service that rejects its configuration, or finds
    its port taken at the start, ends everything. A second Ctrl-C kills what still runs.

    Data is kept in `.waybill` (WAYBILL_HOME). For root, whose folders the server's own account may not enter, the
    database is kept under /var/lib/waybill; the start prints where, and which databases there belong to nobody any
    more. Set WAYBILL_DATABASE_URL to use your own Postgres server instead of the embedded one: that one is not
    supervised.

    With --observe, traces and metrics go to a Jaeger and a Prometheus that are found on this machine (in the PATH, or
    named by JAEGER_BIN and PROMETHEUS_BIN), with Waybill's alert rules. The start prints where to look, and how to get
    what is missing.
    """
    # Imported here, so that `waybill --help` and the other commands do not pay for what only this one needs.
    from waybill_cli.local.settings import load_settings
    from waybill_cli.local.tether import die_with_make
    from waybill_cli.local.up import run_everything

    die_with_make()
    raise typer.Exit(run_everything(load_settings(), observe=observe))
