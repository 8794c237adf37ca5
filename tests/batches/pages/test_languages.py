"""No English is left on a page in another language."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace

from support.batch_views import LOCKED, NOW, SUMMARY, batch, file
from waybill.messages import msg
from waybill.messages.catalogue import HOLE
from waybill.web.languages import ENGLISH, LANGUAGES, Language
from waybill.web.layout import Frame, render
from waybill_batches.pages.batch_list import UploadPart, list_page
from waybill_batches.pages.batch_page import batch_page
from waybill_batches.pages.file_rows import file_row
from waybill_batches.pages.files_part import FilesQuery, files_part
from waybill_batches.pages.shown_summary import shown_summary
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.views import BatchListing, FileListing

INDONESIAN = LANGUAGES["id"]
COUNTS = dict.fromkeys(FileStatus, 2) | {"files": 2 * len(FileStatus)}


def _pages(language: Language) -> dict[str, str]:
    """Every page in everything it can say; what comes from strangers is said without words."""
    views = [batch(status, counts=COUNTS, rules=[{"pattern": "1", "mapping": "auto"}]) for status in BatchStatus]
    views += [batch(BatchStatus.PROCESSING), batch(BatchStatus.QUEUED), batch(BatchStatus.FAILED)]
    views += [batch(BatchStatus.FAILED, error=LOCKED)]
    views = [replace(each, name="1", id=uuid.UUID(int=number)) for number, each in enumerate(views)]
    files = [file(status, path="1/2", mapping="auto", retry_count=1, converted=True) for status in FileStatus]
    files += [file(path="1", reused=True, xml_key="1")]
    at = Frame("/batches", None, "", "/")
    made = {}
    for name, listed, refused in (("list", views, ""), ("empty", [], "1")):
        made[name] = render(
            "batches/list.html",
            language,
            page=at,
            list=list_page(BatchListing(listed, "1", 1), "1", NOW, language),
            upload=UploadPart(1, "4 MB", 5, "0"),
            may_send=True,
            refused=refused,
        )
    for view in views:
        for name, asked, shown in (("batch", FilesQuery(), files), ("none", FilesQuery("failed", "", "1", "1"), [])):
            made[f"{name} {view.status}"] = render(
                "batches/batch.html",
                language,
                page=at,
                batch=batch_page(view, SUMMARY, "files", language, msg("explain.next")),
                files=files_part(view, SUMMARY, FileListing(shown, "1"), asked, language),
            )
        for name, summary in (("summary", SUMMARY), ("no summary", None)):
            made[f"{name} {view.status}"] = render(
                "batches/summary.html",
                language,
                page=at,
                batch=batch_page(view, summary, "summary", language),
                summary=shown_summary(view.id, summary, language) if summary is not None else None,
            )
    for each in files:
        made[f"file {each.status}"] = render(
            "batches/file.html",
            language,
            page=at,
            file=file_row(uuid.UUID(int=1), each, language),
            batch={"name": "1", "href": "/"},
            sha256="1",
            result="{}" if each.reused else "",
            cut=True,
            too_large=True,
        )
    return made


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[^\W\d_]{2,}", text)}


def _seen(page: str) -> set[str]:
    """The words that a person can see or hear: the text, and attributes that are read out."""
    page = re.sub(r"(?s)<script.*?</script>|<svg class=\"sprite.*?</svg>", " ", page)
    read_out = re.findall(r'(?:aria-label|title|placeholder|data-news|data-drop)="([^"]*)"', page)
    page = re.sub(r'(?s)<button name="language".*?</button>|<span class="tag">\w[^<]*</span>', " ", page)
    return _words(" ".join([re.sub(r"<[^>]*>", " ", page), *read_out]))


def test_no_english_is_left_on_a_page_in_another_language() -> None:
    english, own = (
        {word for message in language.messages.values() for word in _words(HOLE.sub(" ", message.other))}
        for language in (ENGLISH, INDONESIAN)
    )
    only_english = english - own
    assert {"choose", "files", "the", "ready"} <= only_english
    names = {"waybill", "sha", "accounting"}
    for name, page in _pages(INDONESIAN).items():
        assert _seen(page) & only_english == set(), name
        assert _seen(page) - own - names == set(), f"{name}: written into a template"
    assert "ready" in _seen(_pages(ENGLISH)["list"]) & only_english, "the test can see English"
