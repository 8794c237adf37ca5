"""A run in words: one line per task."""

from __future__ import annotations

from typing import Any

from waybill.janitor.models import TaskOutcome
from waybill_janitor.run import TaskReport

_AFTERWORDS = {
    TaskOutcome.UNFINISHED: "; its time was up, the next run goes on",
    TaskOutcome.FAILED: "; failed: {error}",
}


def line(report: TaskReport, *, dry_run: bool = False) -> str:
    """`results      60 results, 20 expired, 1.2 s`."""
    if dry_run:
        said = f"{report.planned:,} {report.task.items}" if report.planned else "nothing to do"
    else:
        said = counts(report) or "nothing to do"
    end = _AFTERWORDS.get(report.outcome, "").format(error=report.error)
    return f"{report.task.name:<13}{said}, {report.seconds:.1f} s{end}"


def counts(report: TaskReport) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report.done.items() if count)


def record(report: TaskReport, *, dry_run: bool = False) -> dict[str, Any]:
    """The same for programs."""
    numbers: dict[str, Any] = {"planned": report.planned} if dry_run else {"done": dict(report.done)}
    return {
        "task": report.task.name,
        "outcome": report.outcome.value,
        **numbers,
        "found": report.found,
        "seconds": round(report.seconds, 3),
        "error": report.error,
    }
