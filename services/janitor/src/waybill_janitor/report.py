"""A run in words: one line per task. A task that found nothing and one that did not look say different things."""

from __future__ import annotations

from typing import Any

from waybill.console.human_units import duration
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import NEXT_LOOK, RESUMED
from waybill_janitor.run import TaskReport

_AFTERWORDS = {
    TaskOutcome.UNFINISHED: "; its time was up, the next run goes on",
    TaskOutcome.FAILED: "; failed: {error}",
}

_AFTERWORDS_OF_A_PLAN = {**_AFTERWORDS, TaskOutcome.UNFINISHED: "; its time was up, so it did not look at everything"}


def line(report: TaskReport, *, dry_run: bool = False) -> str:
    """`results      60 results, 20 expired, 1.2 s`."""
    planned = f"{report.planned:,} {report.task.items}" if report.planned else ""
    said = planned if dry_run else counts(report)
    if NEXT_LOOK in report.found:
        said = (
            f"not looked: it has compared everything before, and does so again in {duration(report.found[NEXT_LOOK])}"
        )
    elif RESUMED in report.found:
        said = f"{said or 'nothing to do'} in the rest of a scan that an earlier run began"
    said = said or "nothing to do"
    afterwords = _AFTERWORDS_OF_A_PLAN if dry_run else _AFTERWORDS
    end = afterwords.get(report.outcome, "").format(error=report.error)
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
        "looked": NEXT_LOOK not in report.found,
        "found": report.found,
        "seconds": round(report.seconds, 3),
        "error": report.error,
    }
