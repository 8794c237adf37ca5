"""Options and arguments that several commands share, so that they work the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.console.human_units import parse_duration

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Only jobs of this kind.")]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Only jobs of this tenant.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="How many to list at most.")]

OPERATOR = "operator"
"""The tenant of jobs that are enqueued with a command, unless the command names another."""


def seconds(value: str | float) -> float:
    """Parse a duration option; a plain number is seconds. Typer passes defaults through here too."""
    if isinstance(value, float | int):
        return float(value)
    return _parsed(value, unit_required=False)


def age(value: str) -> float:
    """Parse a duration with a mandatory unit, because `--older-than 30` must not mean thirty seconds."""
    return _parsed(value, unit_required=True)


def _parsed(value: str, *, unit_required: bool) -> float:
    try:
        return parse_duration(value, unit_required=unit_required)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
