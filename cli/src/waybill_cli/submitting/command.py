"""`waybill submit`: hand documents to Waybill, see them through, and take the results home."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from waybill_cli.exits import ExitCode
from waybill_cli.options import AsJson, seconds
from waybill_cli.submitting.batches import File, batches
from waybill_cli.submitting.client import Api, ApiFailed
from waybill_cli.terminal import complain, print_json, print_line, remark, remarks, safe, styled

_FINAL = {"complete", "failed", "cancelled", "expired"}
_WORDS = {
    "queued": "Waiting",
    "processing": "Converting…",
    "complete": "Ready",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "expired": "Expired",
}
_STYLES = {"complete": "green", "failed": "red", "cancelled": "yellow", "expired": "yellow"}
_LOOK_EVERY = 0.5


@dataclass
class Submission:
    """One file on its way."""

    file: File
    job: dict[str, Any] | None = None
    problem: str | None = None
    result: Path | None = None
    reused: bool = False
    bar: TaskID | None = field(default=None, repr=False)

    @property
    def failed(self) -> bool:
        return self.problem is not None or (self.job is not None and self.job["status"] in _FINAL - {"complete"})

    @property
    def over(self) -> bool:
        return self.problem is not None or (self.job is not None and self.job["status"] in _FINAL)


def submit(
    files: Annotated[list[Path], typer.Argument(help="The PDFs.", exists=True, dir_okay=False, readable=True)],
    mapping: Annotated[
        str | None, typer.Option("--mapping", "-m", metavar="NAME", help="How to read them; see `waybill mapping ls`.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until all are done.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the XML there; implies --wait.", file_okay=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Convert again what was converted before.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", parser=seconds, metavar="SECONDS", help="Give up waiting after this time.")
    ] = 3600.0,
    url: Annotated[
        str, typer.Option("--url", envvar="WAYBILL_API_URL", metavar="URL", help="Where Waybill's API is.")
    ] = "http://127.0.0.1:8080",
    key: Annotated[
        str, typer.Option("--key", envvar="WAYBILL_API_KEY", metavar="KEY", help="An API key.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Convert PDFs: upload them and, with --wait or -o, see them through.

    Exit code 1 if any of them failed.
    """
    if not key:
        complain("submit needs an API key: set WAYBILL_API_KEY. `waybill apikey create` makes one.")
        raise typer.Exit(ExitCode.USAGE)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    submissions = [Submission(File(path, path.stat().st_size)) for path in files]
    with Api(url, key) as api, _progress(as_json) as progress:
        try:
            _upload(api, submissions, progress, mapping, force)
            if wait or output is not None:
                _see_through(api, submissions, progress, output, timeout)
        except ApiFailed as error:
            complain(error.message)
            raise typer.Exit(ExitCode.REFUSED) from error
        finally:
            progress.stop()
    _report(submissions, as_json, waited=wait or output is not None)
    if any(each.failed for each in submissions):
        raise typer.Exit(ExitCode.REFUSED)


def _progress(hidden: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[said]}", markup=False),
        console=remarks(),
        transient=True,
        disable=hidden or not remarks().is_terminal,
    )


def _upload(api: Api, submissions: Sequence[Submission], progress: Progress, mapping: str | None, force: bool) -> None:
    by_path = {each.file.path: each for each in submissions}
    for each in submissions:
        each.bar = progress.add_task(safe(each.file.path.name)[:40], total=each.file.bytes or 1, said="")

    def sent(path: Path, count: int) -> None:
        bar = by_path[path].bar
        if bar is not None:
            progress.update(bar, advance=count, said="Uploading")

    def waiting(wait: float) -> None:
        remark(f"The API asks for {wait:g} s of patience.")

    for batch in batches([each.file for each in submissions]):
        answers = api.upload(batch, mapping=mapping, force=force, sent=sent, waiting=waiting)
        for file, answer in zip(batch, answers, strict=True):
            each = by_path[file.path]
            each.job, each.reused = answer["job"], answer["deduped_from"] is not None
            each.problem = answer["problem"]["detail"] if answer["problem"] else None
            _show(progress, each)


def _see_through(
    api: Api, submissions: Sequence[Submission], progress: Progress, output: Path | None, timeout: float
) -> None:
    """Follow the jobs to their ends, and fetch each result when it is there."""
    until = time.monotonic() + timeout
    while True:
        for each in submissions:
            if each.job is not None and not each.over:
                each.job = api.job(each.job["id"])
                _show(progress, each)
            if output is not None and each.job is not None and each.job["status"] == "complete" and not each.result:
                target = _target(output, each, submissions)
                api.download(each.job["id"], target)
                each.result = target
        if all(each.over for each in submissions):
            return
        if time.monotonic() > until:
            raise ApiFailed(f"Not all were done within {timeout:g} s. They go on; `waybill jobs ls` shows how far.")
        time.sleep(_LOOK_EVERY)


def _target(output: Path, each: Submission, submissions: Sequence[Submission]) -> Path:
    """`invoice.xml` for `invoice.pdf`; with the job's id where two files have the same name."""
    stem = each.file.path.stem
    same = [other for other in submissions if other.file.path.stem == stem]
    name = f"{stem}-{each.job['id']}.xml" if len(same) > 1 and each.job else f"{stem}.xml"
    return output / name


def _show(progress: Progress, each: Submission) -> None:
    if each.bar is None:
        return
    if each.problem is not None:
        progress.update(each.bar, said="Refused")
    elif each.job is not None:
        said = each.job["progress_message"] or _WORDS[each.job["status"]]
        done = 1.0 if each.over else each.job["progress"] or 0.0
        progress.update(each.bar, total=1.0, completed=done, said=said)


def _report(submissions: Sequence[Submission], as_json: bool, *, waited: bool) -> None:
    if as_json:
        print_json([_record(each) for each in submissions])
        return
    for each in submissions:
        status = each.job["status"] if each.job else "failed"
        line = styled(f"{_WORDS[status]:<12}", _STYLES.get(status, ""))
        line.append(f" {safe(each.file.path.name)}")
        if each.job is not None:
            line.append(f"  {each.job['id']}", "dim")
        if each.reused:
            line.append("  reused", "dim")
        if each.result is not None:
            line.append(f"  → {safe(each.result)}")
        print_line(line)
        for sentence in _what_is_wrong(each):
            print_line(styled(f"             {sentence}", "red"))
    if not waited and any(not each.over for each in submissions):
        remark("They are being converted. --wait waits for them, -o DIR fetches the XML.")


def _what_is_wrong(each: Submission) -> list[str]:
    if each.problem is not None:
        return [each.problem]
    error = each.job["error"] if each.job else None
    if not error:
        return []
    findings = [finding["message"] for finding in error["findings"] if finding.get("message")]
    return findings[:5] + ([f"and {len(findings) - 5} more"] if len(findings) > 5 else []) or [error["message"]]


def _record(each: Submission) -> dict[str, Any]:
    return {
        "file": str(each.file.path),
        "job": each.job,
        "reused": each.reused,
        "problem": each.problem,
        "result": str(each.result) if each.result else None,
    }
