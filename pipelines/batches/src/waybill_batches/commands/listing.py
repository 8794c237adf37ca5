"""`waybill batch ls` and `show`: what there is, and what became of each file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from waybill.console.api_connection import DEFAULT_URL, Key, Url, connected
from waybill.console.human_units import ago, duration, size
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_json, print_line, remark, safe, styled
from waybill_batches.commands.outcome import counts_text, status_text

BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="The batch's id.", show_default=False)]


def ls(
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=500, help="How many at most.")] = 20,
    url: Url = DEFAULT_URL,
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """List your batches, newest first."""
    with connected("batch ls", url, key) as api:
        found = api.look(f"/api/batches?limit={limit}")
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    columns = [Column("BATCH"), Column("STATUS"), Column("NAME", most=40), Column("AGE", right=True, drop=2)]
    print_table(
        [*columns, Column("FILES", least=20, wraps=True)],
        [
            (
                styled(each["id"], "dim"),
                status_text(each["status"]),
                styled(each["name"]),
                styled(ago(datetime.fromisoformat(each["created_at"]), now)),
                styled(counts_text(each)),
            )
            for each in found["batches"]
        ],
    )
    if not found["batches"]:
        remark("There are no batches yet. `waybill batch submit FOLDER` makes one.")


def show(
    batch: BatchId,
    failed: Annotated[bool, typer.Option("--failed", help="Also list the files that failed.")] = False,
    files: Annotated[bool, typer.Option("--files", help="Also list all files.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=500, help="How many files.")] = 100,
    url: Url = DEFAULT_URL,
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Show a batch: its state, its summary, and what failed in it."""
    with connected("batch show", url, key) as api:
        path = f"/api/batches/{quote(batch, safe='')}"
        found = api.look(path)
        wanted = f"{path}/files?limit={limit}" + ("&status=failed" if failed and not files else "")
        listed = api.look(wanted)["files"] if failed or files else []
    if as_json:
        print_json({**found, "files": listed} if failed or files else found)
        return
    print_line(status_text(found["status"]).append(f"  {safe(found['name'])}"))
    print_facts(_facts(found))
    if listed:
        print_line()
        _print_files(listed)


def _facts(batch: dict[str, Any]) -> list[tuple[str, Any]]:
    facts = [
        ("batch", styled(batch["id"])),
        ("ZIP", styled(f"{batch['source']['name']}, {size(batch['source']['bytes'])}")),
        ("files", styled(counts_text(batch))),
    ]
    if batch["run"] > 1:
        facts.append(("run", styled(batch["run"])))
    facts += [("rule", styled(f"{each['pattern']} → {each['mapping'] or 'none'}")) for each in batch["rules"]]
    if batch["error"] is not None:
        facts.append(("error", styled(f"{batch['error']['message']} ({batch['error']['code']})", "red")))
    summary = batch["summary"]
    if summary is not None:
        facts.append(("took", styled(duration(summary["duration_ms"] / 1000))))
        for each in summary["by_error"][:5]:
            facts.append(("failed", styled(f"{each['files']} × {each['message']} ({each['error_type']})", "red")))
        for each in summary["totals"][:10]:
            facts.append((each["field"], styled(f"{each['sum']} {each['currency'] or ''} in {each['files']}".strip())))
    return facts


def _print_files(files: list[dict[str, Any]]) -> None:
    print_table(
        [
            Column("STATUS"),
            Column("TYPE", drop=2),
            Column("SIZE", right=True, drop=1),
            Column("PATH", least=24, wraps=True),
        ],
        [
            (
                status_text(each["status"]),
                styled(each["type"]),
                styled(size(each["bytes"])),
                styled(f"{each['path']}: {each['error']['message']}" if each["error"] else each["path"]),
            )
            for each in files
        ],
    )
