"""The summary of a run, ready for a page: counts, tables by type and error, totals, slowest files, a tree by folder.

Pure: it is made of the figures that Postgres added up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from waybill_batches.error_types import error_type
from waybill_batches.repository.figures import BatchFigures
from waybill_batches.status import BatchStatus, FileStatus, outcome

_DEEPEST = 12
"""Folders below that are counted in the one above."""


def status_of(counts: Mapping[str, int]) -> BatchStatus:
    """How a batch ended whose files ended like this."""
    complete = sum(counts.get(one, 0) for one in (FileStatus.COMPLETE, FileStatus.NEEDS_REVIEW))
    expired = counts.get(FileStatus.EXPIRED, 0)
    if expired and not complete:
        return BatchStatus.EXPIRED
    complete += expired
    return outcome(complete, counts.get(FileStatus.FAILED, 0), counts.get(FileStatus.CANCELLED, 0))


def summary_of(figures: BatchFigures, run: int) -> dict[str, Any]:
    return {
        "run": run,
        "made_at": figures.now.isoformat(),
        "duration_ms": round(figures.milliseconds),
        "counts": {"files": sum(figures.by_status.values()), **figures.by_status},
        "reused": figures.reused,
        "by_type": figures.by_type,
        "by_error": [_error(row) for row in figures.by_error],
        "totals": [
            {"field": row["field"], "currency": row["currency"], "sum": row["total"], "files": row["files"]}
            for row in figures.totals
        ],
        "slowest": figures.slowest,
        "folders": _tree(figures.by_folder),
    }


def _error(row: Mapping[str, Any]) -> dict[str, Any]:
    params = json.loads(row["params"]) if row["params"] else {}
    return {
        "code": row["code"],
        "error_type": error_type(row["code"]),
        "message": row["message"],
        "key": row["key"],
        "params": params,
        "files": row["files"],
        "examples": row["examples"],
    }


def _tree(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Each folder with what is in it and below it."""
    root = _folder("")
    for row in rows:
        node = root
        _count(node, row)
        for part in row["folder"].split("/")[:_DEEPEST] if row["folder"] else ():
            node = node["folders"].setdefault(part, _folder(part))
            _count(node, row)
    return _listed(root)


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "files": 0, "complete": 0, "failed": 0, "bytes": 0, "folders": {}}


def _count(node: dict[str, Any], row: Mapping[str, Any]) -> None:
    for figure in ("files", "complete", "failed", "bytes"):
        node[figure] += row[figure]


def _listed(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "folders": [_listed(each) for each in node["folders"].values()]}
