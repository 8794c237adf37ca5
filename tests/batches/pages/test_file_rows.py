"""A file as a row: what is said, and what can be done."""

from __future__ import annotations

import uuid
from typing import Any

from support.batch_views import LOCKED, file
from waybill.web.languages import ENGLISH, LANGUAGES
from waybill_batches.pages.file_rows import file_row
from waybill_batches.status import FileStatus
from waybill_batches.views import BatchFault

BATCH = uuid.UUID(int=7)


def test_a_file_with_a_result_leads_to_it() -> None:
    row = file_row(BATCH, file(), ENGLISH)
    assert (row.folder, row.name, row.path) == ("2025/july/", "a.pdf", "2025/july/a.pdf")
    assert (row.word, row.type, row.size, row.took, row.said) == ("Ready", "PDF", "48 KB", "12 ms", "")
    assert row.json == f"/api/batches/{BATCH}/files/{'d' * 32}/result"
    assert row.xml == row.review == row.check == ""


def test_a_converted_file_has_its_xml_and_its_review() -> None:
    converted: dict[str, Any] = {"mapping": "auto", "converted": True}
    row = file_row(BATCH, file(**converted, xml_key="x", xml_bytes=1), ENGLISH)
    assert row.xml.endswith("/result?format=xml")
    assert row.review == f"/review/{uuid.UUID(int=2)}"
    assert row.mapping == "automatic"
    doubtful = file_row(BATCH, file(FileStatus.NEEDS_REVIEW, **converted), ENGLISH)
    assert (doubtful.check, doubtful.review, doubtful.json) == (f"/review/{uuid.UUID(int=2)}", "", "")
    assert doubtful.icon == "doubt"


def test_a_failed_file_says_why_in_the_readers_language() -> None:
    failed = file(FileStatus.FAILED, retry_count=2)
    assert file_row(BATCH, failed, ENGLISH).said == LOCKED.message
    row = file_row(BATCH, failed, LANGUAGES["id"])
    assert row.said == "Berkas ini memakai kata sandi. Silakan hapus kata sandinya."
    assert (row.word, row.tries, row.json) == ("Gagal", "2 percobaan ulang", "")
    # What is wrong with a document is a message of the document library.
    spoken = file(FileStatus.FAILED, error=BatchFault("GW_4XX", "It is broken.", "document.nothing_like_this", {}))
    assert file_row(BATCH, spoken, LANGUAGES["id"]).said
    assert file_row(BATCH, file(FileStatus.FAILED, error=None), ENGLISH).said == "Something went wrong on our side."


def test_what_has_no_result_any_more_or_never_gets_one_says_so() -> None:
    assert "removed" in file_row(BATCH, file(FileStatus.EXPIRED), ENGLISH).said
    assert "cancelled" in file_row(BATCH, file(FileStatus.CANCELLED), ENGLISH).said
    assert file_row(BATCH, file(FileStatus.QUEUED), ENGLISH).said == ""


def test_a_reused_result_has_no_time_and_an_unknown_type_keeps_its_name() -> None:
    row = file_row(BATCH, file(reused=True, type="hologram", path="a"), ENGLISH)
    assert (row.took, row.type, row.folder, row.name) == ("", "hologram", "", "a")
