"""No English is left on a page in another language."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from support.views import job
from waybill.errors import NotPdf, Unauthorized
from waybill.messages import msg
from waybill.messages.catalogue import HOLE
from waybill.web.languages import ENGLISH, LANGUAGES, Language
from waybill.web.layout import Frame, render
from waybill_convert.pages.queue import QueueQuery, queue
from waybill_convert.pages.upload import RefusedFile, ShownChoice, UploadLimits
from waybill_convert.status import Status
from waybill_convert.views import Fault, Listing, Pause

INDONESIAN = LANGUAGES["id"]


def _pages(language: Language) -> dict[str, str]:
    """Every page in everything it can say; what comes from strangers is said without words."""
    now = datetime.now(UTC)
    paused = Pause(msg("convert.paused"), None)
    fault = Fault("GW_5XX", "Busy.", [{"message": "1", "page": 1}, {"message": "2"}], "gateway_call.busy")
    jobs = [job(status, error=fault, attempt=2, reused=True, original_name="1.pdf") for status in Status]
    jobs += [job(Status.PROCESSING, stopping=True), job(Status.PROCESSING, remaining_seconds=9)]
    jobs += [job(Status.FAILED, source_kept=False), job(Status.QUEUED, on_hold=paused)]
    jobs += [
        job(Status.PROCESSING, progress_message="convert.progress.converting"),
        job(retry_at=now + timedelta(hours=2), error=fault),
    ]
    jobs = [replace(each, id=uuid.UUID(int=number)) for number, each in enumerate(jobs)]  # an id may spell a word
    counts = dict.fromkeys(Status, 1)
    full = queue(Listing(jobs, "2", "", counts, paused), QueueQuery(cursor="1"), now, language)
    frames = {at: Frame(at, tenant, "", "/") for at, tenant in (("/queue", "1"), ("/sign-in", None), ("/", None))}
    limits, mappings = UploadLimits(1, 2, 3, "4 MB"), [ShownChoice("a", "1", True)]
    refused = [RefusedFile("1.pdf", language.explain(NotPdf()))]
    made = {
        "queue": render("convert/queue.html", language, page=frames["/queue"], queue=full),
        "sign-in": render("sign_in.html", language, page=frames["/sign-in"], why=language.explain(Unauthorized())),
        "upload": render(
            "convert/upload.html", language, page=frames["/"], limits=limits, mappings=mappings, refused=refused, sent=2
        ),
    }
    problem = {"status": 404, "code": "1", "headline": language.say("problem.404"), "detail": "1"}
    made["problem"] = render("problem.html", language, page=Frame("/nowhere", "", "", "/"), problem=problem)
    for name, total, asked in (
        ("empty", 0, QueueQuery()),
        *((f"no-{status}", 1, QueueQuery(status)) for status in ("active", "complete", "failed")),
        ("no-name", 1, QueueQuery(words="1")),
    ):
        nothing = queue(Listing([], None, "", counts | dict.fromkeys(Status, total), None), asked, now, language)
        made[name] = render("convert/queue.html", language, page=frames["/queue"], queue=nothing)
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
