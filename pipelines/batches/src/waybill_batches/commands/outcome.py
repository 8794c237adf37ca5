"""What became of a batch, in words, in colours and as an exit code."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from waybill.console.exits import ExitCode
from waybill.console.human_units import counted
from waybill.console.terminal import styled

WORDS = {
    "queued": "Waiting",
    "processing": "Being worked",
    "complete": "Complete",
    "complete_with_errors": "With errors",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "expired": "Expired",
    "needs_review": "Please check",
}
STYLES = {
    "complete": "green",
    "complete_with_errors": "yellow",
    "needs_review": "yellow",
    "failed": "red",
    "cancelled": "red",
    "expired": "dim",
}
ACTIVE = frozenset({"queued", "processing"})


def status_text(status: str) -> Text:
    return styled(WORDS.get(status, status), STYLES.get(status, ""))


def counts_text(batch: dict[str, Any]) -> str:
    """`120 files: 118 complete, 2 failed`."""
    counts = batch["counts"]
    parts = [
        f"{counts[name]} {WORDS[name].lower()}"
        for name in ("complete", "needs_review", "failed", "cancelled", "processing", "queued", "expired")
        if counts.get(name)
    ]
    return f"{counted(counts['files'], 'file')}{': ' if parts else ''}{', '.join(parts)}"


def exit_code(batch: dict[str, Any]) -> ExitCode:
    """For scripts that waited."""
    if batch["status"] == "complete":
        return ExitCode.NEEDS_REVIEW if batch["counts"]["needs_review"] else ExitCode.OK
    return ExitCode.PARTIAL if batch["status"] == "complete_with_errors" else ExitCode.REFUSED
