"""Applies a command to all jobs that match its options: counts them, asks, and goes on in short steps."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, duration
from waybill.console.options import age
from waybill.console.terminal import complain, print_json, print_line, remark, remarks, safe
from waybill.db import Database
from waybill_engine import State, bulk
from waybill_engine.bulk import Step
from waybill_engine.job_filter import Action, JobFilter

if TYPE_CHECKING:
    from waybill_engine.job_filter import Lend

States = Annotated[
    list[State] | None,
    typer.Option("--state", metavar="STATE", help="Only jobs in this state. May be repeated."),
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only jobs of this queue.")]
ErrorCode = Annotated[
    str | None, typer.Option("--error-code", metavar="CODE", help="Only jobs whose last error has this code.")
]
UniqueKey = Annotated[str | None, typer.Option("--unique", metavar="KEY", help="Only jobs with this unique key.")]
OlderThan = Annotated[
    float | None,
    typer.Option(
        "--older-than",
        parser=age,
        metavar="DURATION",
        help="Only jobs that ended, or were enqueued if they have not ended, longer ago: 12h, 30d, 2w.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")]


@dataclass(frozen=True, slots=True)
class Words:
    """How a command speaks of what it does."""

    would: str
    """`cancel`, as in "Would cancel 3 jobs"."""
    did: str
    """`Cancelled {} …`, with a place for the jobs."""
    nothing: str
    """`cancelled`, as in "Nothing was cancelled"."""
    record: str
    """The name of the number in JSON."""
    for_good: bool = False


_WORDS = {
    Action.CANCEL: Words("cancel", "Cancelled {}", "cancelled", "cancelled"),
    Action.RETRY: Words("retry", "Queued {} again", "retried", "retried"),
    Action.DELETE: Words("delete", "Deleted {}", "deleted", "deleted", for_good=True),
}


@dataclass(slots=True)
class Total:
    """What all steps did together."""

    done: int = 0
    stopping: int = 0
    left: list[uuid.UUID] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.done += len(step.done) + step.below
        self.stopping += len(step.stopping)
        self.left += step.left


def filter_of(
    action: Action,
    state: Sequence[State] | None,
    kind: str | None,
    tenant: str | None,
    queue: str | None,
    error_code: str | None,
    unique: str | None,
    older_than: float | None,
    *,
    unless_said: Sequence[State],
) -> JobFilter | None:
    """The filter that the options make; None if there are none. `unless_said` are the states without `--state`."""
    if not state and older_than is None and not any((kind, tenant, queue, error_code, unique)):
        return None
    states = list(dict.fromkeys(state or unless_said))
    if wrong := [each for each in states if each not in action.states]:
        choose = ", ".join(each for each in State if each in action.states)
        raise typer.BadParameter(
            f"jobs that are {', '.join(wrong)} cannot be {_WORDS[action].nothing}. Choose from: {choose}",
            param_hint="--state",
        )
    wait = timedelta(seconds=older_than) if older_than is not None else None
    return JobFilter(states, kind, tenant, queue, error_code, unique, wait)


def change_chosen(
    action: Action,
    jobs: Sequence[object] | None,
    wanted: JobFilter | None,
    steps: Callable[[Lend, JobFilter], AsyncIterator[Step]],
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> bool:
    """Change the jobs that a filter chooses. False, with nothing done, if the command names its jobs instead."""
    either(jobs, wanted)
    if wanted is None:
        refuse_without_filter(dry_run=dry_run, yes=yes)
        return False
    apply(action, wanted, lambda database: steps(database.hot, wanted), yes=yes, dry_run=dry_run, as_json=as_json)
    return True


def either(jobs: Sequence[object] | None, wanted: JobFilter | None) -> None:
    """Refuse a command that names jobs and filters at once, or neither."""
    if bool(jobs) == (wanted is not None):
        raise typer.BadParameter(
            "name the jobs, or choose them with --state, --kind, --tenant, --queue, --error-code, --unique or "
            "--older-than",
            param_hint="ID or options",
        )


def refuse_without_filter(**options: bool) -> None:
    """Refuse options that only make sense together with a filter."""
    for name, given in options.items():
        if given:
            raise typer.BadParameter("only works with a filter, not with ids", param_hint=f"--{name.replace('_', '-')}")


def apply(
    action: Action,
    wanted: JobFilter,
    steps: Callable[[Database], AsyncIterator[Step]],
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Count the jobs and ask, unless told otherwise; then take the steps and say what became of the jobs."""
    words, what = _WORDS[action], described(wanted)

    async def count(database: Database) -> int:
        return await bulk.count(database.hot, action, wanted)

    matching, total = 0, Total()
    if dry_run or not yes:
        matching = with_database(count)
    if not dry_run and (yes or (matching and _agreed(words, matching, what))):
        total = with_database(lambda database: _take(steps(database)))
    if as_json:
        print_json(_record(action, matching, total, dry_run=dry_run))
    elif dry_run:
        print_line(f"Would {words.would} {counted(matching, 'job')} {what}.")
    else:
        asked = f"; {counted(total.stopping, 'running job')} asked to stop" if total.stopping else ""
        done = words.did.format(f"{counted(total.done, 'job')} {what}")
        print_line(f"{done}{asked}.")
    report_left(total.left)


def report_left(left: Sequence[uuid.UUID]) -> None:
    """Exit with 1 if jobs could not be changed, and say why."""
    if left:
        complain(
            f"{counted(len(left), 'job')} could not be changed: another job has the unique key, or the family "
            f"changes too fast. The first is {left[0]}."
        )
        raise typer.Exit(ExitCode.REFUSED)


async def _take(steps: AsyncIterator[Step]) -> Total:
    total = Total()
    with remarks().status("Starting…") as status:
        async for step in steps:
            total.add(step)
            status.update(f"{counted(total.done + total.stopping, 'job')} so far…")
    return total


def _record(action: Action, matching: int, total: Total, *, dry_run: bool) -> dict[str, Any]:
    seen = total.done + total.stopping + len(total.left)
    record: dict[str, Any] = {"dry_run": dry_run, "matching": max(matching, seen), _WORDS[action].record: total.done}
    if action is Action.CANCEL:
        record["stopping"] = total.stopping
    if action is not Action.DELETE:
        record["left"] = total.left
    return record


def described(wanted: JobFilter) -> str:
    """`(failed) of kind convert_pdf that ended more than 2 h ago`."""
    facts = (
        ("of kind", wanted.kind),
        ("of tenant", wanted.tenant),
        ("in queue", wanted.queue),
        ("with the error", wanted.error_code),
        ("with the unique key", wanted.unique_key),
    )
    of = "".join(f" {said} {safe(value)}" for said, value in facts if value is not None)
    if wanted.older_than is not None:
        ended = "ended" if all(state.final for state in wanted.states) else "were enqueued"
        of += f" that {ended} more than {duration(wanted.older_than.total_seconds())} ago"
    return f"({', '.join(wanted.states)}){of}"


def _agreed(words: Words, matching: int, what: str) -> bool:
    """Ask for confirmation. Anything but a yes ends the command."""
    asked = f"{words.would.capitalize()} {counted(matching, 'job')} {what}{', for good' if words.for_good else ''}?"
    try:
        agreed = typer.confirm(asked, err=True)
    except typer.Abort:  # there is nobody to ask
        agreed = False
    if not agreed:
        remark(f"Nothing was {words.nothing}. Use --yes to {words.would} without asking, or --dry-run to only count.")
        raise typer.Exit(ExitCode.REFUSED)
    return True
