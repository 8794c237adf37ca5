"""The table of a batch's files: addresses are read leniently, and the filters count what is there."""

from __future__ import annotations

from support.batch_views import SUMMARY, batch, file
from waybill.web.languages import ENGLISH
from waybill_batches.pages.files_part import FilesQuery, files_part, files_query
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.views import FileListing


def test_addresses_are_read_leniently() -> None:
    assert files_query("nonsense", "../x", " a\x00b ") == FilesQuery(words="ab")
    assert files_query("active", "encrypted_office").statuses == (FileStatus.QUEUED, FileStatus.PROCESSING)
    assert FilesQuery("failed", "pdf", "a&b").query(cursor="1-2") == "?status=failed&type=pdf&q=a%26b&cursor=1-2"


def test_the_filters_count_what_is_there_and_keep_the_search() -> None:
    view = batch(counts={"files": 12, "queued": 1, "processing": 2, "complete": 7, "failed": 2})
    part = files_part(view, None, FileListing([file()], "0-1"), FilesQuery("failed", words="a b"), ENGLISH)
    assert [(each.name, each.count, each.chosen) for each in part.filters] == [
        ("all", 12, False), ("active", 3, False), ("ready", 7, False), ("failed", 2, True),
    ]  # fmt: skip
    assert part.filters[2].href == f"/batches/{view.id}?status=complete&q=a+b"
    assert part.total == -1, "nobody knows how many match the words"
    assert part.next == f"/batches/{view.id}?status=failed&q=a+b&cursor=0-1"
    assert files_part(view, None, FileListing([], None), FilesQuery("active"), ENGLISH).total == 3


def test_the_types_to_choose_from_are_those_of_the_batch_once_they_are_known() -> None:
    chosen = files_part(batch(), SUMMARY, FileListing([], None), FilesQuery(type="9"), ENGLISH)
    assert [(each.word, each.chosen) for each in chosen.types] == [("PDF", False), ("9", True)]
    assert len(files_part(batch(), None, FileListing([], None), FilesQuery(), ENGLISH).types) == 6


def test_an_empty_table_says_why() -> None:
    nothing = FileListing([], None)
    waiting = files_part(batch(BatchStatus.QUEUED), None, nothing, FilesQuery(), ENGLISH)
    assert "as soon as the ZIP is unpacked" in waiting.nothing
    assert "no files" in files_part(batch(BatchStatus.FAILED), None, nothing, FilesQuery(), ENGLISH).nothing
    assert "search" in files_part(batch(), None, nothing, FilesQuery(words="x"), ENGLISH).nothing
