"""`waybill batch submit`: send a ZIP or a folder, wait until its files are worked, and fetch the results."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from waybill.console.api_client import ApiClient, ApiFailed
from waybill.console.api_connection import DEFAULT_URL, Key, Url, connected
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import complain, print_json, print_line, remark, safe, styled
from waybill.console.upload_request import UploadFile, UploadRequest
from waybill.errors import Refused
from waybill_batches.commands.folder_zip import zip_folder
from waybill_batches.commands.outcome import ACTIVE, counts_text, exit_code, status_text
from waybill_batches.commands.progress_view import Bar
from waybill_batches.commands.results import fetch

_LOOK_EVERY = 0.5
_SHOWN_ERRORS = 10


def submit(
    path: Annotated[
        Path,
        typer.Argument(help="A ZIP, or a folder, which is zipped.", exists=True, readable=True, show_default=False),
    ],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the batch.")] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            "-r",
            metavar="PATTERN=MAPPING",
            help="Convert the files that match by a mapping: '*.pdf=auto'. Repeatable; the first that matches decides.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="A JSON Schema of fields that a language model fills in each file.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Make a new batch even if the same ZIP is there.")] = False,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until all files are worked.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write the results to this folder, or ZIP; implies --wait."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", parser=seconds, metavar="SECONDS", help="Stop waiting after this time.")
    ] = 3600.0,
    url: Url = DEFAULT_URL,
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Send a ZIP or a folder of documents, and with --wait or -o wait for the results.

    Exits with 1 if the batch failed, with 5 if some of its files did, and with 4 if a person has to look at some first.
    """
    fields = {"rules": json.dumps([_rule(each) for each in rules or ()])}
    fields |= {"name": name or path.resolve().name.removesuffix(".zip"), "force": "true" if force else "false"}
    if schema is not None:
        fields["schema"] = schema.read_text("utf-8")
    with connected("batch submit", url, key) as api, _zipped(path) as archive, Bar(archive, hidden=as_json) as bar:
        answer = _send(api, archive, fields, bar)
        batch = answer["batch"]
        waits = wait or output is not None
        if waits:
            batch = _wait(api, batch, bar, timeout)
        written = fetch(api, batch, output) if output is not None and batch["downloadable"] else None
        errors = _errors(api, batch) if waits and batch["counts"]["failed"] else []
    _report(answer, batch, errors, written, as_json=as_json)
    if not waits:
        if not as_json:
            remark("The files are being worked. Use --wait to wait for them, or -o DIR to also get the results.")
        return
    if (code := exit_code(batch)) is not ExitCode.OK:
        raise typer.Exit(code)


def _rule(text: str) -> dict[str, str]:
    pattern, equals, mapping = text.rpartition("=")
    if not equals or not pattern:
        complain(f"--rule {text!r} must be PATTERN=MAPPING, such as 'invoices/*.pdf=auto'.")
        raise typer.Exit(ExitCode.USAGE)
    return {"pattern": pattern, "mapping": mapping}


@contextmanager
def _zipped(path: Path) -> Iterator[UploadFile]:
    """The ZIP to send: the given one, or a temporary one of the folder."""
    if not path.is_dir():
        yield UploadFile(path, path.stat().st_size)
        return
    with tempfile.TemporaryDirectory(prefix="waybill-") as folder:
        archive = Path(folder) / f"{path.resolve().name or 'batch'}.zip"
        try:
            zip_folder(path, archive)
        except (OSError, Refused) as error:
            said = error.message if isinstance(error, Refused) else f"{error.filename}: {error.strerror}."
            complain(said)
            raise typer.Exit(ExitCode.USAGE) from error
        yield UploadFile(archive, archive.stat().st_size)


def _send(api: ApiClient, archive: UploadFile, fields: dict[str, str], bar: Bar) -> dict[str, Any]:
    form = UploadRequest("file", [archive], fields)
    answer = api.post_files(
        "/api/batches",
        form,
        sent=lambda _file, count: bar.sent(count),
        waiting=lambda wait: bar.remark(f"The API asked us to wait {wait:g} s."),
    )
    if not isinstance(answer.get("batch"), dict):
        raise api.no_waybill()
    return answer


def _wait(api: ApiClient, batch: dict[str, Any], bar: Bar, timeout: float) -> dict[str, Any]:
    until = time.monotonic() + timeout
    while batch["status"] in ACTIVE:
        if time.monotonic() > until:
            raise ApiFailed(
                f"The batch was not done within {timeout:g} s. It goes on; `waybill batch show {batch['id']}` tells."
            )
        time.sleep(_LOOK_EVERY)
        batch = api.look(f"/api/batches/{batch['id']}")
        bar.show(batch)
    return batch


def _errors(api: ApiClient, batch: dict[str, Any]) -> list[dict[str, Any]]:
    found = api.look(f"/api/batches/{batch['id']}/files?status=failed&limit={_SHOWN_ERRORS}")["files"]
    return list(found)


def _report(
    answer: dict[str, Any],
    batch: dict[str, Any],
    errors: list[dict[str, Any]],
    written: Path | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json({**answer, "batch": batch, "errors": errors, "output": str(written) if written else None})
        return
    line = status_text(batch["status"])
    line.append(f"  {safe(batch['name'])}  ")
    line.append(safe(batch["id"]), "dim")
    if answer["deduped_from"] is not None:
        line.append("  sent before", "dim")
    print_line(line)
    if batch["counts"]["files"]:
        print_line(styled(f"  {counts_text(batch)}"))
    if batch["error"] is not None:
        print_line(styled(f"  {batch['error']['message']}", "red"))
    for each in errors:
        print_line(styled(f"  {each['path']}: {each['error']['message']}", "red"))
    if (more := batch["counts"]["failed"] - len(errors)) > 0 and errors:
        print_line(styled(f"  and {more} more; `waybill batch show {batch['id']} --failed` lists them", "red"))
    if written is not None:
        print_line(styled(f"  → {written}"))
