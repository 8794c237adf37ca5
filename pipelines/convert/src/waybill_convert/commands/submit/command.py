"""`waybill submit`: hand documents to Waybill, see them through, and take the results home."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import complain
from waybill_convert.commands.submit.api_client import Api, ApiAway, ApiFailed
from waybill_convert.commands.submit.progress_view import Bars, hint, report
from waybill_convert.commands.submit.requests import File, batches
from waybill_convert.commands.submit.submissions import Submission, target

_LOOK_EVERY = 0.5


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
    try:
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        submissions = [Submission(File(path, path.stat().st_size)) for path in files]
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}.")
        raise typer.Exit(ExitCode.USAGE) from error
    waits = wait or output is not None
    try:
        with Api(url, key) as api, Bars(submissions, hidden=as_json) as bars:
            _upload(api, submissions, bars, mapping, force)
            if waits:
                _see_through(api, submissions, bars, output, timeout)
    except (ApiFailed, KeyboardInterrupt) as error:
        # What was handed in goes on without us: say what it is called.
        if any(each.job for each in submissions):
            report(submissions, as_json=as_json)
        if isinstance(error, KeyboardInterrupt):
            raise
        complain(error.message)
        raise typer.Exit(ExitCode.UNREACHABLE if isinstance(error, ApiAway) else ExitCode.REFUSED) from error
    report(submissions, as_json=as_json)
    if not waits:
        hint(submissions)
    if any(each.failed for each in submissions):
        raise typer.Exit(ExitCode.REFUSED)


def _upload(api: Api, submissions: Sequence[Submission], bars: Bars, mapping: str | None, force: bool) -> None:
    whose = {each.file: each for each in submissions}

    def send(batch: Sequence[File]) -> None:
        try:
            answers = api.upload(
                batch,
                mapping=mapping,
                force=force,
                sent=lambda file, count: bars.sent(whose[file], count),
                waiting=lambda wait: bars.remark(f"The API asks for {wait:g} s of patience."),
            )
        except ApiFailed as error:
            if not error.of_request:
                raise
            if len(batch) > 1:  # this API takes less at once than others do
                send(batch[: len(batch) // 2])
                send(batch[len(batch) // 2 :])
                return
            answers = [{"job": None, "deduped_from": None, "problem": {"detail": error.message}}]
        for file, answer in zip(batch, answers, strict=True):
            each = whose[file]
            each.job, each.reused = answer["job"], answer["deduped_from"] is not None
            each.problem = answer["problem"]["detail"] if answer["problem"] else None
            bars.show(each)

    for batch in batches([each.file for each in submissions]):
        send(batch)


def _see_through(api: Api, submissions: Sequence[Submission], bars: Bars, output: Path | None, timeout: float) -> None:
    """Follow the jobs to their ends, and fetch each result when it is there."""
    until = time.monotonic() + timeout
    while True:
        for each in submissions:
            if each.job is not None and not each.over:
                each.job = api.job(each.job["id"])
                bars.show(each)
            if output is not None and each.status == "complete" and each.problem is None and each.result is None:
                _fetch(api, each, target(output, each, submissions))
        if all(each.over for each in submissions):
            return
        if time.monotonic() > until:
            raise ApiFailed(f"Not all were done within {timeout:g} s. They go on; `waybill jobs ls` shows how far.")
        time.sleep(_LOOK_EVERY)


def _fetch(api: Api, each: Submission, to: Path) -> None:
    assert each.job is not None, "what is complete has a job"  # noqa: S101
    try:
        api.download(each.job["id"], to)
    except ApiAway:
        raise
    except ApiFailed as error:
        each.problem = error.message  # the others may fare better
    else:
        each.result = to
