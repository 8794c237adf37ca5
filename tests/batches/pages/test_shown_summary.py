"""The summary in words and bars."""

from __future__ import annotations

import uuid

from support.batch_views import LOCKED, SUMMARY
from waybill.web.languages import ENGLISH, LANGUAGES
from waybill_batches.pages.shown_summary import shown_errors, shown_summary

BATCH = uuid.UUID(int=7)


def test_figures_types_and_folders() -> None:
    shown = shown_summary(BATCH, SUMMARY, ENGLISH)
    assert (shown.files, shown.ready, shown.failed, shown.reused) == (12, 10, 2, 3)
    assert (shown.size, shown.took) == ("10.0 MB", "61 s")
    assert [(each.look, each.count) for each in shown.states] == [("complete", 9), ("needs_review", 1), ("failed", 2)]
    assert [(each.word, each.files, each.took) for each in shown.types] == [
        ("PDF", 10, "950 ms"), ("9", 2, "0.0 ms"),
    ]  # fmt: skip
    assert (shown.folders[0].name, shown.folders[0].folders[0].name, shown.loose) == ("1", "2", 4)
    assert shown.slowest[0].href == f"/batches/{BATCH}/files/d"


def test_an_amount_keeps_every_digit() -> None:
    assert shown_summary(BATCH, SUMMARY, ENGLISH).totals[0].sum == "-12,345,678,901,234,567,890.25"
    assert shown_summary(BATCH, SUMMARY, LANGUAGES["id"]).totals[0].sum == "-12.345.678.901.234.567.890,25"


def test_errors_that_read_the_same_are_one() -> None:
    assert [(each.said, each.files, each.examples) for each in shown_errors(SUMMARY, ENGLISH)] == [
        (LOCKED.message, 2, ("1.pdf", "2.pdf"))
    ]
