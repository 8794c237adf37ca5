"""`waybill submit`: upload documents, wait for their jobs, and download the results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.api_client import ApiAway, ApiFailed
from waybill.console.api_connection import DEFAULT_URL, Key, Url, need_key
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import complain, remark
from waybill.console.upload_request import UploadFile
from waybill_convert.commands.submit.api_client import SubmitClient
from waybill_convert.commands.submit.progress_view import Bars, hint, report
from waybill_convert.commands.submit.requests import requests_for
from waybill_convert.commands.submit.submissions import Submission, target

_LOOK_EVERY = 0.5
_SAMPLE = Path(__file__).parents[2] / "pages" / "sample" / "sample-invoice.pdf"


class LossChoice(StrEnum):
    STRICT = "strict"
    LENIENT = "lenient"


def submit(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The PDFs to convert; e-invoices as XML; workbooks and CSV files with --mapping.",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Convert the invoice that comes with Waybill, to see whether all works.")
    ] = False,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--mapping",
            "-m",
            metavar="NAME",
            help="The mapping to use, or auto for the one that recognises the document.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until all are done.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the XML there; implies --wait.", file_okay=False),
    ] = None,
    loss: Annotated[
        LossChoice | None,
        typer.Option(
            "--loss",
            help="What becomes of details of an e-invoice without a place in the result: strict refuses it, lenient"
            " drops and lists them. By default, the mapping decides.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Convert files again that were converted before.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", parser=seconds, metavar="SECONDS", help="Stop waiting after this time.")
    ] = 3600.0,
    url: Url = DEFAULT_URL,
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Convert PDFs, e-invoices, workbooks or CSV files: upload them and, with --wait or -o, wait for the results.

    Exits with 1 if any of them failed, and with 4 if a person has to look at a result before anybody gets it.
    """
    need_key("submit", key)
    paths = [*(files or ()), *([_SAMPLE] if sample else ())]
    if not paths:
        complain("submit needs a PDF to convert, or --sample.")
        raise typer.Exit(ExitCode.USAGE)
    try:
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        submissions = [Submission(UploadFile(path, path.stat().st_size)) for path in paths]
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}.")
        raise typer.Exit(ExitCode.USAGE) from error
    waits = wait or output is not None
    try:
        with SubmitClient(url, key) as api, Bars(submissions, hidden=as_json) as bars:
            _upload(api, submissions, bars, mapping, loss, force)
            if waits:
                _wait_for_results(api, submissions, bars, output, timeout)
    except (ApiFailed, KeyboardInterrupt) as error:
        # Jobs that were created go on without us, so print their ids.
        if any(each.job for each in submissions):
            report(submissions, url=url.rstrip("/"), as_json=as_json)
        if isinstance(error, KeyboardInterrupt):
            raise
        complain(error.message)
        raise typer.Exit(ExitCode.UNREACHABLE if isinstance(error, ApiAway) else ExitCode.REFUSED) from error
    report(submissions, url=url.rstrip("/"), as_json=as_json)
    if not waits:
        hint(submissions)
    if any(each.failed for each in submissions):
        raise typer.Exit(ExitCode.REFUSED)
    if waits and (waiting := sum(each.needs_review for each in submissions)):
        remark(f"{waiting} of {len(submissions)} not downloaded: a person has to look at the result first.")
        raise typer.Exit(ExitCode.NEEDS_REVIEW)


def _upload(
    api: SubmitClient,
    submissions: Sequence[Submission],
    bars: Bars,
    mapping: str | None,
    loss: LossChoice | None,
    force: bool,
) -> None:
    whose = {each.file: each for each in submissions}

    def send(files: Sequence[UploadFile]) -> None:
        try:
            answers = api.upload(
                files,
                mapping=mapping,
                loss=loss.value if loss is not None else None,
                force=force,
                sent=lambda file, count: bars.sent(whose[file], count),
                waiting=lambda wait: bars.remark(f"The API asked us to wait {wait:g} s."),
            )
        except ApiFailed as error:
            if not error.of_request:
                raise
            if len(files) > 1:  # this API accepts less per request
                send(files[: len(files) // 2])
                send(files[len(files) // 2 :])
                return
            answers = [{"job": None, "deduped_from": None, "problem": {"detail": error.message}}]
        for file, answer in zip(files, answers, strict=True):
            each = whose[file]
            each.job, each.reused = answer["job"], answer["deduped_from"] is not None
            each.problem = answer["problem"]["detail"] if answer["problem"] else None
            bars.show(each)

    for files in requests_for([each.file for each in submissions]):
        send(files)


def _wait_for_results(
    api: SubmitClient, submissions: Sequence[Submission], bars: Bars, output: Path | None, timeout: float
) -> None:
    """Poll the jobs until they end, and download each result when it is ready."""
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
            raise ApiFailed(f"Not all were done within {timeout:g} s. They go on; `waybill jobs ls` shows their state.")
        time.sleep(_LOOK_EVERY)


def _fetch(api: SubmitClient, each: Submission, to: Path) -> None:
    assert each.job is not None, "a complete submission has a job"  # noqa: S101
    try:
        api.download(each.job["id"], to)
    except ApiAway:
        raise
    except ApiFailed as error:
        each.problem = error.message  # the others may still succeed
    else:
        each.result = to
