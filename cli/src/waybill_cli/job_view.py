"""How a job is printed: its state, a note about it, its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from waybill.console.human_units import ago, counted, duration, moment
from waybill.console.tables import Column, print_table
from waybill.console.terminal import styled
from waybill.messages import in_english
from waybill_engine import Job, State
from waybill_engine.queries import Happening

STYLES = {
    State.SCHEDULED: "magenta",
    State.QUEUED: "yellow",
    State.RUNNING: "cyan",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.DEAD_LETTER: "bold red",
    State.CANCELLED: "dim",
}


def state_text(state: str) -> Text:
    return styled(state, STYLES[State(state)])


def tries(job: Job) -> str:
    return f"{job.attempts}/{job.max_attempts}"


def error_text(job: Job) -> str:
    return ": ".join(part for part in (job.error_code, job.error_message) if part)


def note(job: Job, now: datetime) -> str:
    """What is most important about a job besides its state."""
    if job.state == State.RUNNING:
        stop = "asked to stop" if job.cancel_requested_at else ""
        return " · ".join(part for part in (stop, progress(job)) if part)
    if job.pending_children:
        return f"{job.children - job.pending_children:,} of {counted(job.children, 'child', 'children')} ended"
    if job.parked_for:
        return f"waits for its turn in {job.sequence_key}"
    if job.state == State.SCHEDULED:
        again = "again " if job.error_code else ""
        due = f"{again}{ago(job.run_at, now)}" if job.run_at > now else "due"
        return f"{due} · {error_text(job)}" if job.error_code else due
    return error_text(job) if job.state != State.SUCCEEDED else ""


def progress(job: Job) -> str:
    share = f"{job.progress * 100:.0f} %" if job.progress is not None else ""
    return " ".join(part for part in (share, in_english(job.progress_message or "")) if part)


def waited_and_ran(history: Sequence[Happening]) -> tuple[float | None, float | None]:
    """Seconds from enqueueing to the first start, and seconds of the last run. None while it is not over."""
    starts = [index for index, one in enumerate(history) if one.event == "started"]
    if not starts:
        return None, None
    waited = (history[starts[0]].at - history[0].at).total_seconds()
    last = history[starts[-1]]
    ends = [one.at for one in history[starts[-1] + 1 :] if one.lease_token == last.lease_token]
    return waited, (ends[0] - last.at).total_seconds() if ends else None


def print_timeline(history: Sequence[Happening]) -> None:
    start = history[0].at
    print_table(
        [Column("", drop=1), Column("", right=True), Column(""), Column("", least=20, wraps=True)],
        [
            (
                styled(moment(one.at), "dim"),
                styled(f"+{duration((one.at - start).total_seconds())}"),
                _event_text(one.event),
                styled(_describe(one)),
            )
            for one in history
        ],
        indent=2,
    )


def _event_text(event: str) -> Text:
    style = {
        "succeeded": STYLES[State.SUCCEEDED],
        "failed": STYLES[State.FAILED],
        "dead_lettered": STYLES[State.DEAD_LETTER],
        "crashed": STYLES[State.FAILED],
        "cancelled": STYLES[State.CANCELLED],
    }.get(event, "")
    return styled(event.replace("_", " "), style)


def _describe(one: Happening) -> str:
    """Describe an event. Details without a description are shown as they are."""
    detail: dict[str, Any] = dict(one.detail)
    for said in ("worker", "key", "params"):  # in the row, and in the message
        detail.pop(said, None)
    parts = []
    if one.event == "started":
        parts.append(f"run {one.lease_token}" + (f" on {one.worker}" if one.worker else ""))
    reason = [str(detail.pop(key)) for key in ("code", "message") if detail.get(key)]
    if reason:
        parts.append(": ".join(reason))
    retry_at = detail.pop("retry_at", None)
    if isinstance(retry_at, str):
        parts.append(f"again in {duration((datetime.fromisoformat(retry_at) - one.at).total_seconds())}")
    parts += [f"{key.replace('_', ' ')} {value}" for key, value in detail.items()]
    return " · ".join(parts)
