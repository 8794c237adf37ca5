"""The output of `waybill submit`: a progress bar for each file, and a line for each at the end."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from waybill.console.terminal import print_json, print_line, remark, remarks, safe, styled
from waybill_convert.commands.submit.submissions import Submission

_WORDS = {
    "unsent": "Not sent",
    "refused": "Refused",
    "queued": "Waiting",
    "processing": "Converting…",
    "complete": "Ready",
    "needs_review": "Please check",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "expired": "Expired",
}
_STYLES = {"complete": "green", "failed": "red", "refused": "red", "unsent": "red"}


class Bars:
    """A progress bar for each file. They are only shown on a terminal."""

    def __init__(self, submissions: Sequence[Submission], *, hidden: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[said]}", markup=False),
            console=remarks(),
            transient=True,
            disable=hidden or not remarks().is_terminal,
        )
        self._tasks = {
            each: self._progress.add_task(safe(each.file.path.name)[:40], total=each.file.bytes or 1, said="")
            for each in submissions
        }

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def sent(self, each: Submission, count: int) -> None:
        """Advance the upload of a file; a negative count takes it back, because the file is sent again."""
        self._progress.update(self._tasks[each], advance=count, said="Uploading")

    def show(self, each: Submission) -> None:
        """Show the state of its job."""
        said, done = _WORDS.get(each.status, each.status), 1.0
        if each.job is not None and not each.over:
            said, done = each.job["progress_message"] or said, each.job["progress"] or 0.0
        self._progress.update(self._tasks[each], total=1.0, completed=done, said=safe(said))

    def remark(self, text: str) -> None:
        self._progress.console.print(styled(text, "dim"), soft_wrap=True)


def report(submissions: Sequence[Submission], *, url: str, as_json: bool) -> None:
    """Print what became of each file. `url` is where the API and its pages are."""
    if as_json:
        print_json([each.record() for each in submissions])
        return
    for each in submissions:
        line = styled(f"{_WORDS.get(each.status, each.status):<12}", _STYLES.get(each.status, "yellow"))
        line.append(f" {safe(each.file.path.name)}")
        if each.job is not None:
            line.append(f"  {safe(each.job['id'])}", "dim")
        if each.reused:
            line.append("  reused", "dim")
        if each.result is not None:
            line.append(f"  → {safe(each.result)}")
        print_line(line)
        if each.recognised:
            print_line(styled(f"             {each.recognised}", "dim"))
        for sentence in each.wrong:
            print_line(styled(f"             {sentence}", "red"))
        if each.needs_review and each.job is not None:
            print_line(styled(f"             {_in_doubt(each.job)} {url}{each.job['links']['review']}", "yellow"))


def _in_doubt(job: dict[str, Any]) -> str:
    count = job["review"]["count"]
    return f"{count} {'value is' if count == 1 else 'values are'} in doubt, so a person has to look first:"


def hint(submissions: Sequence[Submission]) -> None:
    if any(each.job is not None and not each.over for each in submissions):
        remark("The documents are being converted. Use --wait to wait for them, or -o DIR to also get the XML.")
