"""The summary of a batch in words and bars: by type, by error, by folder, the slowest files, the totals."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from waybill.web.languages import Language
from waybill_batches.pages.bars import bar
from waybill_batches.pages.durations import duration
from waybill_batches.pages.fault_words import fault_words
from waybill_batches.pages.file_rows import type_word
from waybill_batches.status import FileStatus
from waybill_batches.views import BatchFault

_STATES = (
    FileStatus.COMPLETE,
    FileStatus.NEEDS_REVIEW,
    FileStatus.FAILED,
    FileStatus.CANCELLED,
    FileStatus.EXPIRED,
)


@dataclass(frozen=True, slots=True)
class ShownState:
    look: str
    word: str
    count: int


@dataclass(frozen=True, slots=True)
class ShownType:
    name: str
    word: str
    files: int
    complete: int
    failed: int
    size: str
    took: str
    bar: Markup


@dataclass(frozen=True, slots=True)
class ShownError:
    said: str
    files: int
    examples: tuple[str, ...]
    bar: Markup


@dataclass(frozen=True, slots=True)
class ShownTotal:
    field: str
    currency: str
    sum: str
    files: int


@dataclass(frozen=True, slots=True)
class SlowFile:
    path: str
    href: str
    took: str
    bar: Markup


@dataclass(frozen=True, slots=True)
class ShownFolder:
    name: str
    files: int
    complete: int
    failed: int
    size: str
    bar: Markup
    folders: tuple[ShownFolder, ...]


@dataclass(frozen=True, slots=True)
class ShownSummary:
    files: int
    ready: int
    failed: int
    reused: int
    size: str
    took: str
    run: int
    states: tuple[ShownState, ...]
    bar: Markup
    types: tuple[ShownType, ...]
    errors: tuple[ShownError, ...]
    totals: tuple[ShownTotal, ...]
    slowest: tuple[SlowFile, ...]
    folders: tuple[ShownFolder, ...]
    """Those at the top; empty if there are no folders."""
    loose: int
    """Files that are in none of them."""


def shown_summary(batch_id: uuid.UUID, summary: Mapping[str, Any], language: Language) -> ShownSummary:
    counts, tree = summary["counts"], summary["folders"]
    ready = counts.get(FileStatus.COMPLETE, 0) + counts.get(FileStatus.NEEDS_REVIEW, 0)
    top = tuple(_folder(each, max(tree["files"], 1), language) for each in tree["folders"])
    return ShownSummary(
        files=counts["files"],
        ready=ready,
        failed=counts.get(FileStatus.FAILED, 0),
        reused=summary["reused"],
        size=language.size(tree["bytes"]),
        took=duration(summary["duration_ms"], language),
        run=summary["run"],
        states=tuple(
            ShownState(state.value, language.say(f"batches.file_states.{state}"), counts[state])
            for state in _STATES
            if counts.get(state)
        ),
        bar=bar({state.value: counts.get(state, 0) for state in _STATES}, counts["files"]),
        types=_types(summary["by_type"], language),
        errors=shown_errors(summary, language),
        totals=tuple(_total(each, language) for each in summary["totals"]),
        slowest=_slowest(batch_id, summary["slowest"], language),
        folders=top,
        loose=tree["files"] - sum(each.files for each in top),
    )


def shown_errors(summary: Mapping[str, Any], language: Language) -> tuple[ShownError, ...]:
    """What was wrong, the most frequent first. Errors that read the same are one."""
    found: dict[str, tuple[int, list[str]]] = {}
    for each in summary["by_error"]:
        said = fault_words(BatchFault(each["code"], each["message"] or "", each["key"], each["params"] or {}), language)
        files, examples = found.get(said, (0, []))
        found[said] = files + each["files"], [*examples, *each["examples"]]
    most = max((files for files, _ in found.values()), default=0)
    return tuple(
        ShownError(said, files, tuple(examples[:3]), bar({"failed": files}, most))
        for said, (files, examples) in sorted(found.items(), key=lambda each: -each[1][0])
    )


def _types(rows: Sequence[Mapping[str, Any]], language: Language) -> tuple[ShownType, ...]:
    most = max((row["files"] for row in rows), default=0)
    return tuple(
        ShownType(
            row["type"],
            type_word(row["type"], language),
            row["files"],
            row["complete"],
            row["failed"],
            language.size(row["bytes"]),
            duration(row["ms"], language),
            _outcome(row, most),
        )
        for row in rows
    )


def _outcome(row: Mapping[str, Any], most: int) -> Markup:
    rest = row["files"] - row["complete"] - row["failed"]
    return bar({"complete": row["complete"], "failed": row["failed"], "cancelled": rest}, most)


def _slowest(batch_id: uuid.UUID, rows: Sequence[Mapping[str, Any]], language: Language) -> tuple[SlowFile, ...]:
    most = max((row["ms"] for row in rows), default=0.0)
    return tuple(
        SlowFile(
            row["path"],
            f"/batches/{batch_id}/files/{row['doc_id']}",
            duration(row["ms"], language),
            bar({"ran": row["ms"]}, most),
        )
        for row in rows
    )


def _folder(node: Mapping[str, Any], most: int, language: Language) -> ShownFolder:
    return ShownFolder(
        node["name"],
        node["files"],
        node["complete"],
        node["failed"],
        language.size(node["bytes"]),
        _outcome(node, most),
        tuple(_folder(each, most, language) for each in node["folders"]),
    )


def _total(row: Mapping[str, Any], language: Language) -> ShownTotal:
    return ShownTotal(row["field"], row["currency"] or "", _amount(row["sum"], language), row["files"])


def _amount(text: str, language: Language) -> str:
    """A decimal with the language's marks. It is text all the way, because a float would lose digits."""
    whole, _, decimals = text.partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    grouped = language.number(int(digits or "0"))
    return f"{sign}{grouped}{language.say('numbers.decimal')}{decimals}" if decimals else f"{sign}{grouped}"
