"""The pages in another language: who gets which, numbers and times as readers write them, and no English left."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from markupsafe import Markup

from pages.test_pages import HTML
from pages.test_words import NOW, job
from waybill.web.languages import ENGLISH, LANGUAGES, Language
from waybill.web.languages.catalogue import HOLE
from waybill.web.languages.preference import asked_for
from waybill.web.layout import Frame, render
from waybill_convert.models import Fault, Hold, Listing
from waybill_convert.pages.queue import Shown, queue
from waybill_convert.pages.queue_rows import row
from waybill_convert.pages.upload import Limits, Mapping, Refusal
from waybill_convert.status import Status

INDONESIAN = LANGUAGES["id"]


def test_one_and_many() -> None:
    assert ENGLISH.say("sending.files", count=1) == "1 file"
    assert ENGLISH.say("sending.files", count=1200) == "1,200 files"
    assert INDONESIAN.say("sending.files", count=1) == "1 berkas"
    assert INDONESIAN.say("sending.files", count=1200) == "1.200 berkas"


def test_a_message_with_markup_escapes_everything_else() -> None:
    said = ENGLISH.say("upload.sample", **{"try": Markup("<b>a</b>"), "look": "<i>"})
    assert said == "Nothing at hand? <b>a</b> or &lt;i&gt; first."
    assert isinstance(said, Markup)
    assert not isinstance(ENGLISH.say("sending.remove", name="<i>"), Markup), "the template escapes it"
    assert INDONESIAN.say("sending.progress", percent=7, size="1 MB") == "7% dari 1 MB"


def test_numbers_sizes_and_times_in_indonesian() -> None:
    assert INDONESIAN.number(1234567.5, 2) == "1.234.567,50"
    assert INDONESIAN.number(10**400).count(".") == 133, "a page number may come from anywhere"
    assert [INDONESIAN.size(number) for number in (999, 48_213, 52_428_800)] == ["999 B", "48 KB", "52,4 MB"]
    ago = [INDONESIAN.ago(NOW - timedelta(seconds=each), NOW) for each in (0, 600, 7200, 86400, 3 * 86400, 90 * 86400)]
    assert ago == ["baru saja", "10 menit lalu", "2 jam lalu", "kemarin", "3 hari lalu", "9 Mei 2025"]
    assert INDONESIAN.exactly(NOW) == "7 Agustus 2025 pukul 12.00.00 UTC"
    assert ENGLISH.exactly(NOW) == "7 August 2025, 12:00:00 UTC"
    assert INDONESIAN.wait(100) == "2 menit"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("id", "id"),
        ("id-ID,id;q=0.9,en-US;q=0.8", "id"),
        ("in-ID", "id"),
        ("en-US,id;q=0.9", "en"),
        ("fr-FR, id;q=0.5, en;q=0.3", "id"),
        ("fr-FR,nl;q=0.5", "en"),
        ("id;q=0, en;q=0.1", "en"),
        ("id;q=nonsense", "en"),
        ("," * 100_000 + "id", "en"),
    ],
)
def test_the_browser_s_languages(header: str, code: str) -> None:
    assert asked_for(header).code == code


async def test_what_was_chosen_wins_over_what_the_browser_asks_for(client: httpx.AsyncClient) -> None:
    asked = await client.get("/queue", headers={"Accept-Language": "id"})
    assert '<html lang="id"' in asked.text
    assert "<h1>Antrean</h1>" in asked.text
    assert asked.headers["content-language"] == "id"
    assert {"accept-language", "cookie"} <= {each.strip().lower() for each in asked.headers["vary"].split(",")}
    chosen = await client.post("/language", data={"language": "en", "back": "/queue?q=a"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/queue?q=a")
    assert '<html lang="en"' in (await client.get("/queue", headers={"Accept-Language": "id"})).text
    forgotten = await client.post("/language", data={"language": "xx", "back": "//evil.example"})
    assert forgotten.headers["location"] == "/"
    assert '<html lang="id"' in (await client.get("/queue", headers={"Accept-Language": "id"})).text
    refused = await client.post("/language", data={"language": "id"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403


async def test_problems_are_told_in_the_reader_s_language_and_documents_in_english(client: httpx.AsyncClient) -> None:
    page = await client.get("/no/such/page", headers=HTML | {"Accept-Language": "id"})
    assert page.status_code == 404
    assert "<h1>Tidak ditemukan</h1>" in page.text
    assert "Yang Anda cari tidak ada di sini." in page.text
    document = await client.get("/no/such/page", headers={"Accept-Language": "id"})
    assert document.json()["detail"] == "There is no such thing here."
    denied = await client.post("/session", data={"key": "wb_x"}, headers=HTML | {"Accept-Language": "id"})
    assert denied.status_code == 401
    assert "Ini bukan kunci API kami." in denied.text


def test_a_row_in_indonesian() -> None:
    busy = row(job(attempt=2, retry_at=NOW + timedelta(minutes=4), error=Fault("GW_5XX", "Odd.")), NOW, INDONESIAN)
    assert (busy.word, busy.attempt) == ("Menunggu", "Percobaan 2 dari 4")
    assert busy.going == f"{INDONESIAN.say('errors.GW_5XX')} Dicoba lagi dalam 4 menit"
    storing = row(job(Status.PROCESSING, progress_message="Storing the result"), NOW, INDONESIAN)
    assert storing.going == "Menyimpan hasil"
    faulty = Fault(
        "GW_4XX",
        "Wrong. (and 1 more)",
        [{"message": "Wrong.", "page": 3, "params": {"messages": {"id": "Salah."}}}, {"message": "Aneh."}],
    )
    shown = row(job(Status.FAILED, error=faulty), NOW, INDONESIAN)
    assert shown.error == "Salah. (dan 1 lainnya)"
    assert (shown.findings, shown.findings_word) == (("Halaman 3: Salah.", "Aneh."), "2 hal perlu diperiksa")


def _pages(language: Language) -> dict[str, str]:
    """Every page in everything it can say; what comes from strangers is said without words."""
    now = datetime.now(UTC)
    fault = Fault("GW_5XX", "The converter is busy.", [{"message": "1", "page": 1}, {"message": "2"}])
    jobs = [job(status, error=fault, attempt=2, reused=True, original_name="1.pdf") for status in Status]
    jobs += [job(Status.PROCESSING, stopping=True), job(Status.PROCESSING, remaining_seconds=9)]
    jobs += [job(Status.FAILED, source_kept=False), job(Status.QUEUED, on_hold=Hold("", None))]
    jobs += [job(Status.PROCESSING, progress_message="Converting"), job(retry_at=now + timedelta(hours=2), error=fault)]
    hold = Hold("The converter is having an issue. Nothing is lost: waiting documents go on by themselves.", None)
    jobs = [replace(each, id=uuid.UUID(int=number)) for number, each in enumerate(jobs)]  # an id may spell a word
    counts = dict.fromkeys(Status, 1)
    full = queue(Listing(jobs, "2", "", counts, hold), Shown(cursor="1"), now, language)
    frames = {at: Frame(at, tenant, "", "/") for at, tenant in (("queue", "1"), ("sign-in", None), ("upload", None))}
    limits, mappings = Limits(1, 2, 3, "4 MB"), [Mapping("a", "1", True)]
    refused = [Refusal("1.pdf", language.explain("NOT_PDF", ""))]
    made = {
        "queue": render("queue.html", language, page=frames["queue"], queue=full),
        "sign-in": render("sign_in.html", language, page=frames["sign-in"], why=language.explain("UNAUTHORIZED", "")),
        "upload": render(
            "upload.html", language, page=frames["upload"], limits=limits, mappings=mappings, refused=refused, sent=2
        ),
    }
    problem = {"status": 404, "code": "1", "headline": language.say("problem.404"), "detail": "1"}
    made["problem"] = render("problem.html", language, page=Frame("problem", "", "", "/"), problem=problem)
    for name, total, asked in (
        ("empty", 0, Shown()),
        *((f"no-{status}", 1, Shown(status)) for status in ("active", "complete", "failed")),
        ("no-name", 1, Shown(words="1")),
    ):
        nothing = queue(Listing([], None, "", counts | dict.fromkeys(Status, total), None), asked, now, language)
        made[name] = render("queue.html", language, page=frames["queue"], queue=nothing)
    return made


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[^\W\d_]{2,}", text)}


def _seen(page: str) -> set[str]:
    """The words that a person can see or hear: the text, and attributes that are read out."""
    page = re.sub(r"(?s)<script.*?</script>|<svg class=\"sprite.*?</svg>", " ", page)
    read_out = re.findall(r'(?:aria-label|title|placeholder|data-news|data-drop)="([^"]*)"', page)
    page = re.sub(r'(?s)<button name="language".*?</button>|<span class="tag">.*?</span>', " ", page)
    return _words(" ".join([re.sub(r"<[^>]*>", " ", page), *read_out]))


def test_no_english_is_left_on_a_page_in_another_language() -> None:
    english, own = (
        {word for message in language.messages.values() for word in _words(HOLE.sub(" ", message.other))}
        for language in (ENGLISH, INDONESIAN)
    )
    only_english = english - own
    assert {"upload", "queue", "the", "ready"} <= only_english
    for name, page in _pages(INDONESIAN).items():
        assert _seen(page) & only_english == set(), name
        assert _seen(page) - own - {"waybill", "wb"} == set(), f"{name}: written into a template"
    english_page = _pages(ENGLISH)["queue"]
    assert "queue" in _seen(english_page) & only_english, "the test can see English"
