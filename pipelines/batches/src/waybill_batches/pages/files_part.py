"""The table of a batch's files: which of them the address asks for, the filters, and what is said of an empty one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from waybill.web.languages import Language
from waybill_batches.pages.file_rows import FileRow, file_row, type_word
from waybill_batches.status import FileStatus
from waybill_batches.views import BatchView, FileListing

_LONGEST_WORDS = 200

_FILTERS: tuple[tuple[str, str, tuple[FileStatus, ...]], ...] = (
    ("all", "", tuple(FileStatus)),
    ("active", "active", (FileStatus.QUEUED, FileStatus.PROCESSING)),
    ("ready", "complete", (FileStatus.COMPLETE,)),
    ("in-doubt", "needs_review", (FileStatus.NEEDS_REVIEW,)),
    ("failed", "failed", (FileStatus.FAILED,)),
    ("cancelled", "cancelled", (FileStatus.CANCELLED,)),
    ("expired", "expired", (FileStatus.EXPIRED,)),
)
_ALWAYS = frozenset({"all", "active", "ready", "failed"})
_USUAL_TYPES = ("pdf", "docx", "xlsx", "xml", "json", "text")


@dataclass(frozen=True, slots=True)
class FilesQuery:
    """What the address asks for: which files, and from which cursor on."""

    status: str = ""
    type: str = ""
    words: str = ""
    cursor: str = ""

    @property
    def statuses(self) -> tuple[FileStatus, ...]:
        return next((statuses for _, status, statuses in _FILTERS if status == self.status), ()) if self.status else ()

    @property
    def narrowed(self) -> bool:
        """Whether nobody knows how many files this is without looking."""
        return bool(self.type or self.words)

    def query(self, **other: str) -> str:
        """The address's query with some parts changed, and without empty ones."""
        values = {"status": self.status, "type": self.type, "q": self.words, "cursor": self.cursor, **other}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else ""


def files_query(status: str = "", type: str = "", q: str = "", cursor: str = "") -> FilesQuery:  # noqa: A002 - the address's word
    """Read an address leniently: a mistyped one shows everything rather than an error."""
    known = {each for _, each, _ in _FILTERS}
    text = "".join(character for character in q if character.isprintable()).strip()[:_LONGEST_WORDS]
    kind = type if type.isascii() and type.replace("_", "").isalnum() and len(type) <= 30 else ""
    return FilesQuery(status if status in known else "", kind, text, cursor[:200])


@dataclass(frozen=True, slots=True)
class FileFilter:
    name: str
    word: str
    count: int
    href: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class TypeChoice:
    name: str
    word: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class FilesPart:
    files: list[FileRow]
    filters: list[FileFilter]
    types: list[TypeChoice]
    total: int
    """How many files this is; -1 if nobody knows."""
    all: int
    asked: FilesQuery
    query: str
    nothing: str
    rows: str
    """Where the script gets more rows."""
    next: str
    next_cursor: str
    first: str


def files_part(
    view: BatchView, summary: Mapping[str, Any] | None, listing: FileListing, asked: FilesQuery, language: Language
) -> FilesPart:
    here = f"/batches/{view.id}"
    counts = {
        status: sum(view.counts.get(each, 0) for each in statuses) if status else view.counts.get("files", 0)
        for _, status, statuses in _FILTERS
    }
    types = [each["type"] for each in summary["by_type"]] if summary is not None else list(_USUAL_TYPES)
    return FilesPart(
        files=[file_row(view.id, file, language) for file in listing.files],
        filters=[
            FileFilter(
                name,
                language.say(f"batches.filters.{status or 'all'}"),
                counts[status],
                f"{here}{asked.query(status=status, cursor='')}",
                asked.status == status,
            )
            for name, status, _ in _FILTERS
            # What rarely happens is offered only where it did.
            if name in _ALWAYS or counts[status] or asked.status == status
        ],
        types=[TypeChoice(each, type_word(each, language), each == asked.type) for each in types],
        total=-1 if asked.narrowed else counts[asked.status],
        all=counts[""],
        asked=asked,
        query=asked.query(cursor=""),
        nothing=_nothing(view, asked, language),
        rows=f"{here}/rows{asked.query(cursor='')}",
        next=f"{here}{asked.query(cursor=listing.next)}" if listing.next else "",
        next_cursor=listing.next or "",
        first=f"{here}{asked.query(cursor='')}" if asked.cursor else "",
    )


def _nothing(view: BatchView, asked: FilesQuery, language: Language) -> str:
    if asked.narrowed:
        return language.say("batches.files_page.nothing_found")
    if asked.status:
        return language.say("batches.files_page.nothing_in_state")
    key = "not_unpacked" if view.active else "no_files"
    return language.say(f"batches.files_page.{key}")
