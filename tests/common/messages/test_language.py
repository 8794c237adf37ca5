"""A language's words for messages, numbers, sizes and times."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from markupsafe import Markup

from waybill.errors import NotFound, TooLarge
from waybill.failures import classify
from waybill.messages import languages, msg

NOW = datetime(2025, 8, 7, 12, 0, tzinfo=UTC)
ENGLISH, INDONESIAN = languages()["en"], languages()["id"]


@dataclass
class Told:
    """An error as a job or a problem document has stored it."""

    code: str
    message: str = ""
    key: str | None = None
    params: dict[str, Any] = field(default_factory=dict)


def test_one_and_many() -> None:
    assert ENGLISH.say("convert.sending.files", count=1) == "1 file"
    assert ENGLISH.say("convert.sending.files", count=1200) == "1,200 files"
    assert INDONESIAN.say("convert.sending.files", count=1) == "1 berkas"
    assert INDONESIAN.say("convert.sending.files", count=1200) == "1.200 berkas"


def test_a_message_with_markup_escapes_everything_else() -> None:
    said = ENGLISH.say("convert.upload_page.sample", **{"try": Markup("<b>a</b>"), "look": "<i>"})
    assert said == "No invoice at hand? <b>a</b> or &lt;i&gt; first."
    assert isinstance(said, Markup)
    assert not isinstance(ENGLISH.say("convert.sending.remove", name="<i>"), Markup), "the template escapes it"
    assert INDONESIAN.say("convert.sending.progress", percent=7, size="1 MB") == "7% dari 1 MB"


def test_lists_are_written_out() -> None:
    told = ENGLISH.tell(msg("convert.upload.no_mapping", name="x", names=["a", "b"]))
    assert told == "There is no mapping 'x'. Choose one of: a, b."


def test_a_hole_can_name_another_message() -> None:
    late = msg("convert.cancel_only", status="complete")
    assert str(late) == "Only jobs that wait or run can be cancelled; this one is complete."
    said = INDONESIAN.tell(late)
    assert said is not None
    assert said.endswith("status dokumen ini: Siap.")
    unknown = INDONESIAN.tell(msg("convert.cancel_only", status="odd"))
    assert unknown is not None
    assert unknown.endswith("status dokumen ini: odd.")


def test_a_time_is_written_as_the_language_writes_it() -> None:
    for moment in (NOW, NOW.isoformat(), "2025-08-07T12:00:00Z", "2025-08-07T19:00:00+07:00"):
        scheduled = msg("explain.scheduled", run_at=moment)
        assert str(scheduled) == "It is scheduled until 2025-08-07 12:00:00 UTC."
        assert INDONESIAN.tell(scheduled) == "Tugas ini dijadwalkan pada 07/08/2025 pukul 12.00.00 UTC."
    assert str(msg("explain.scheduled", run_at="soon")) == "It is scheduled until soon."


def test_an_error_in_a_message_is_explained_to_the_same_reader() -> None:
    error: dict[str, Any] = {"code": "IO_ERROR", "message": "Full, it said.", "key": "storage.full", "params": {}}
    ended = msg("explain.ended_because.failed", finished_at=NOW, code="IO_ERROR", error=error)
    assert str(ended).endswith("(IO_ERROR): The disk is full. We'll retry automatically.")
    assert (INDONESIAN.tell(ended) or "").endswith("(IO_ERROR): Disk penuh. Kami akan mencoba lagi secara otomatis.")
    early = msg("explain.ended_because.failed", finished_at=NOW, code="IO_ERROR", error=error | {"key": None})
    assert str(early).endswith("(IO_ERROR): Full, it said.")
    assert (INDONESIAN.tell(early) or "").endswith(f"(IO_ERROR): {INDONESIAN.say('errors.IO_ERROR')}")
    odd = msg("explain.ended_because.failed", finished_at=NOW, code="1", error={"key": 7, "params": "x"})
    assert (INDONESIAN.tell(odd) or "").endswith(f"(1): {INDONESIAN.say('errors.UNKNOWN')}")


def test_errors_are_explained_by_their_key_then_their_sentence_then_their_code() -> None:
    large = TooLarge(msg("convert.upload.too_large", megabytes=50))
    for error in (large, classify(large)):
        assert INDONESIAN.explain(error) == "Berkas ini lebih besar dari 50 MB. Silakan unggah yang lebih kecil."
        assert ENGLISH.explain(error) == large.message
    plain = NotFound("Only operators read this.")
    assert ENGLISH.explain(plain) == "Only operators read this."
    assert INDONESIAN.explain(plain) == INDONESIAN.say("errors.NOT_FOUND")
    assert INDONESIAN.explain(Told("NEW_CODE")) == INDONESIAN.say("errors.UNKNOWN")
    assert ENGLISH.explain(Told("NOT_FOUND")) == ENGLISH.say("errors.NOT_FOUND")


@pytest.mark.parametrize("key", ["convert.of_another_version", "convert.upload.too_large"])
def test_what_another_version_stored_is_explained_all_the_same(key: str) -> None:
    stored = Told("TOO_LARGE", "Too large, said the other version.", key, {"other": 1})
    assert ENGLISH.explain(stored) == "Too large, said the other version."
    assert INDONESIAN.explain(stored) == INDONESIAN.say("errors.TOO_LARGE")


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


def test_numbers_sizes_and_times_in_indonesian() -> None:
    assert INDONESIAN.number(1234567.5, 2) == "1.234.567,50"
    assert INDONESIAN.number(10**400).count(".") == 133, "a page number may come from anywhere"
    assert [INDONESIAN.size(number) for number in (999, 48_213, 52_428_800)] == ["999 B", "48 KB", "52,4 MB"]
    ago = [INDONESIAN.ago(NOW - timedelta(seconds=each), NOW) for each in (0, 600, 7200, 86400, 3 * 86400, 90 * 86400)]
    assert ago == ["baru saja", "10 menit lalu", "2 jam lalu", "kemarin", "3 hari lalu", "9 Mei 2025"]
    assert INDONESIAN.exactly(NOW) == "7 Agustus 2025 pukul 12.00.00 UTC"
    assert ENGLISH.exactly(NOW) == "7 August 2025, 12:00:00 UTC"
    assert INDONESIAN.wait(100) == "2 menit"
