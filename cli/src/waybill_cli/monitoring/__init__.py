"""`waybill monitoring`: the alert rules and the dashboard that come with Waybill, printed, written or checked.

They are part of the package, so that whoever installed Waybill has those that fit its metrics.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waybill_cli.generated_file import Check, Write, deliver

app = typer.Typer(
    help="Take Waybill's alert rules and dashboard into your own Prometheus and Grafana.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def rules(
    write: Write = None,
    check: Check = None,
    docs: Annotated[
        str,
        typer.Option(metavar="URL", help="Where your people find Waybill's documents; alerts link the runbook there."),
    ] = "docs",
) -> None:
    """Print the alert rules, as a rule file of Prometheus."""
    from waybill_cli.monitoring.rules import rules_text

    deliver(rules_text(docs=docs), "monitoring rules", write, check)


@app.command()
def dashboard(write: Write = None, check: Check = None) -> None:
    """Print the dashboard, as JSON that Grafana imports."""
    from waybill_cli.monitoring.dashboard import dashboard_text

    deliver(dashboard_text(), "monitoring dashboard", write, check)
