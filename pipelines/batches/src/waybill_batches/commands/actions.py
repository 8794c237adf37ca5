"""`waybill batch download`, `retry`, `cancel` and `rm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from waybill.console.api_connection import DEFAULT_URL, Key, Url, connected
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, safe, styled
from waybill_batches.commands.listing import BatchId
from waybill_batches.commands.outcome import counts_text, status_text
from waybill_batches.commands.results import fetch


def download(
    batch: BatchId,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The folder, or ZIP, to write the results to.")
    ],
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Fetch the results of a batch."""
    with connected("batch download", url, key) as api:
        found = api.look(_path(batch))
        print_line(styled(f"→ {fetch(api, found, output)}"))


def retry(batch: BatchId, url: Url = DEFAULT_URL, key: Key = "", as_json: AsJson = False) -> None:
    """Work the files that failed or were cancelled once more."""
    with connected("batch retry", url, key) as api:
        _tell(api.call("POST", f"{_path(batch)}/retry"), as_json=as_json)


def cancel(batch: BatchId, url: Url = DEFAULT_URL, key: Key = "", as_json: AsJson = False) -> None:
    """Stop working a batch. What is done stays done."""
    with connected("batch cancel", url, key) as api:
        _tell(api.call("POST", f"{_path(batch)}/cancel"), as_json=as_json)


def delete(batch: BatchId, url: Url = DEFAULT_URL, key: Key = "") -> None:
    """Delete a batch, its files and its results."""
    with connected("batch rm", url, key) as api:
        api.send("DELETE", _path(batch))
    print_line(styled("Deleted."))


def _path(batch: str) -> str:
    return f"/api/batches/{quote(batch, safe='')}"


def _tell(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_line(status_text(found["status"]).append(f"  {safe(found['name'])}: {counts_text(found)}"))
