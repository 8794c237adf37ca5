"""A batch in words, and what can be done with it."""

from __future__ import annotations

from support.batch_views import LOCKED, NOW, batch
from waybill.web.languages import ENGLISH
from waybill_batches.pages.batch_cards import batch_card, news
from waybill_batches.status import BatchStatus


def test_a_batch_that_is_worked_says_how_far_it_is() -> None:
    going = batch(BatchStatus.PROCESSING, counts={"files": 1200, "queued": 700, "processing": 100, "complete": 400})
    card = batch_card(going, NOW, ENGLISH)
    assert (card.word, card.going, card.progress) == ("Working…", "400 of 1,200 files", 33)
    assert (card.cancel, card.delete, card.retry, card.download) == (True, False, "", "")


def test_before_it_is_unpacked_nobody_knows_how_many_files_there_are() -> None:
    waiting = batch_card(batch(BatchStatus.QUEUED), NOW, ENGLISH)
    assert (waiting.word, waiting.going, waiting.progress, waiting.files) == (
        "Waiting", "Waiting to be unpacked", None, "",
    )  # fmt: skip
    unpacking = batch_card(batch(BatchStatus.PROCESSING), NOW, ENGLISH)
    assert (unpacking.word, unpacking.going) == ("Unpacking…", "Being unpacked")


def test_failed_files_are_one_click_away_from_another_try() -> None:
    partly = batch(BatchStatus.COMPLETE_WITH_ERRORS, counts={"files": 9, "complete": 6, "failed": 2, "cancelled": 1})
    card = batch_card(partly, NOW, ENGLISH)
    assert card.retry == "Retry 3 files"
    assert card.download == f"/api/batches/{partly.id}/download"
    assert [each.words for each in card.tallies] == ["6 ready", "2 failed", "1 cancelled"]
    assert card.said == ""
    assert news(partly, ENGLISH) == "Accounting: complete, with errors, 2 files failed"


def test_a_refused_zip_says_why() -> None:
    refused = batch(BatchStatus.FAILED, error=LOCKED)
    card = batch_card(refused, NOW, ENGLISH)
    assert (card.said, card.retry, card.delete) == (LOCKED.message, "Try again", True)
    assert batch_card(batch(BatchStatus.FAILED, counts={"files": 2, "failed": 2}), NOW, ENGLISH).said == (
        "None of the files could be read."
    )
    assert "removed" in batch_card(batch(BatchStatus.EXPIRED), NOW, ENGLISH).said


def test_the_zips_name_is_shown_only_where_it_says_more() -> None:
    assert batch_card(batch(), NOW, ENGLISH).source == ""
    assert batch_card(batch(name="May"), NOW, ENGLISH).source == "Accounting.zip"
