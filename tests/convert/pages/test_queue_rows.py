"""What a row of the queue says about its job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from support.views import NOW, job
from waybill.messages import msg
from waybill.web.languages import ENGLISH, LANGUAGES
from waybill_convert.pages.queue_rows import row
from waybill_convert.status import Status
from waybill_convert.views import Fault, Pause

INDONESIAN = LANGUAGES["id"]


def test_an_estimate_is_said_only_if_there_is_one() -> None:
    assert row(job(Status.PROCESSING, remaining_seconds=8), NOW, ENGLISH).going == "~8 s remaining"
    assert row(job(Status.PROCESSING, remaining_seconds=100), NOW, ENGLISH).going == "~2 min remaining"
    assert row(job(Status.PROCESSING), NOW, ENGLISH).going == ""


def test_the_first_try_is_not_counted() -> None:
    assert row(job(), NOW, ENGLISH).attempt == ""
    assert row(job(attempt=2), NOW, ENGLISH).attempt == "Attempt 2 of 4"


def test_on_hold_wins_over_waiting_for_a_retry() -> None:
    held = job(on_hold=Pause(msg("convert.paused"), None), retry_at=NOW + timedelta(seconds=30))
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


def test_an_error_is_said_by_its_key_and_else_by_what_is_known_of_it() -> None:
    busy = Fault("GW_5XX", "The converter is busy.", key="gateway_call.busy")
    assert row(job(Status.FAILED, error=busy), NOW, ENGLISH).error == "The converter is busy."
    assert row(job(Status.FAILED, error=busy), NOW, INDONESIAN).error == "Konverter sedang sibuk."
    early = Fault("GW_5XX", "Said before there were keys.")
    assert row(job(Status.FAILED, error=early), NOW, ENGLISH).error == "Said before there were keys."
    assert row(job(Status.FAILED, error=early), NOW, INDONESIAN).error == INDONESIAN.say("errors.GW_5XX")
    assert row(job(Status.FAILED), NOW, ENGLISH).error == ENGLISH.say("errors.UNKNOWN")


def test_progress_is_said_by_its_key_and_other_text_as_it_is() -> None:
    storing = job(Status.PROCESSING, progress_message="convert.progress.storing")
    assert row(storing, NOW, ENGLISH).going == "Storing the result"
    assert row(storing, NOW, INDONESIAN).going == "Menyimpan hasil"
    assert row(job(Status.PROCESSING, progress_message="Page 3"), NOW, INDONESIAN).going == "Page 3"


def test_a_row_in_indonesian() -> None:
    busy = row(job(attempt=2, retry_at=NOW + timedelta(minutes=4), error=Fault("GW_5XX", "Odd.")), NOW, INDONESIAN)
    assert (busy.word, busy.attempt) == ("Menunggu", "Percobaan 2 dari 4")
    assert busy.going == f"{INDONESIAN.say('errors.GW_5XX')} Dicoba lagi dalam 4 menit"
    faulty = Fault(
        "GW_4XX",
        "Wrong.",
        [{"message": "Wrong.", "page": 3, "params": {"messages": {"id": "Salah."}}}, {"message": "Aneh."}],
    )
    shown = row(job(Status.FAILED, error=faulty), NOW, INDONESIAN)
    assert shown.error == INDONESIAN.say("errors.GW_4XX"), "it was stored before errors had keys"
    assert (shown.findings, shown.findings_word) == (("Halaman 3: Salah.", "Aneh."), "2 hal perlu diperiksa")
