"""What the pages say about sizes, times and jobs."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from waybill.web.languages import ENGLISH
from waybill_convert.models import ConversionView, Fault, Hold
from waybill_convert.pages.queue_rows import row
from waybill_convert.status import Status

NOW = datetime(2025, 8, 7, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (48_213, "48 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (52_428_800, "52.4 MB"),
    ],
)
def test_sizes(number: int, said: str) -> None:
    assert ENGLISH.size(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "just now"),
        (44, "just now"),
        (50, "1 min ago"),
        (600, "10 min ago"),
        (3000, "1 h ago"),
        (7200, "2 h ago"),
        (86400, "yesterday"),
        (3 * 86400, "3 days ago"),
        (30 * 86400, "8 Jul 2025"),
    ],
)
def test_times(seconds: int, said: str) -> None:
    assert ENGLISH.ago(NOW - timedelta(seconds=seconds), NOW) == said


def job(status: Status = Status.QUEUED, **changes: object) -> ConversionView:
    view = ConversionView(
        id=uuid.uuid4(),
        status=status,
        dead_letter=False,
        original_name="Faktur.pdf",
        bytes=48_213,
        mapping="pt_simon_invoice_v1",
        created_at=NOW,
        listed_at=NOW,
        updated_at=NOW,
        started_at=None,
        finished_at=None,
        attempt=1,
        max_attempts=4,
        progress=None,
        progress_message=None,
        retry_at=None,
        remaining_seconds=None,
        reused=False,
        stopping=False,
        on_hold=None,
        error=None,
        source_kept=True,
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def test_an_estimate_is_said_only_if_there_is_one() -> None:
    assert row(job(Status.PROCESSING, remaining_seconds=8), NOW, ENGLISH).going == "~8 s remaining"
    assert row(job(Status.PROCESSING, remaining_seconds=100), NOW, ENGLISH).going == "~2 min remaining"
    assert row(job(Status.PROCESSING), NOW, ENGLISH).going == ""


def test_the_first_try_is_not_counted() -> None:
    assert row(job(), NOW, ENGLISH).attempt == ""
    assert row(job(attempt=2), NOW, ENGLISH).attempt == "Attempt 2 of 4"


def test_on_hold_wins_over_waiting_for_a_retry() -> None:
    held = job(on_hold=Hold("down", None), retry_at=NOW + timedelta(seconds=30))
    assert (row(held, NOW, ENGLISH).word, row(held, NOW, ENGLISH).icon) == ("On hold", "hold")
    assert row(replace(held, on_hold=None), NOW, ENGLISH).going == "Retry in 30 s"
    assert row(replace(held, on_hold=None), NOW + timedelta(minutes=1), ENGLISH).going == "", "its time has come"


def test_what_can_be_done_depends_on_what_is_left() -> None:
    assert row(job(Status.FAILED), NOW, ENGLISH).retry
    gone = row(job(Status.FAILED, source_kept=False), NOW, ENGLISH)
    assert (gone.retry, gone.upload_again) == (False, True)
    assert not row(job(Status.PROCESSING, stopping=True), NOW, ENGLISH).cancel


def test_findings_are_counted_once_and_cut_short() -> None:
    said_already = job(Status.FAILED, error=Fault("GW_4XX", "No text.", [{"message": "No text."}]))
    assert row(said_already, NOW, ENGLISH).findings == ()
    many = job(Status.FAILED, error=Fault("GW_4XX", "Wrong.", [{"message": f"Line {n}"} for n in range(2000)]))
    shown = row(many, NOW, ENGLISH)
    assert shown.findings_word == "2,000 things to look at"
    assert len(shown.findings) == 51
    assert shown.findings[-1] == "… and 1,950 more"
