"""The review page as HTML, whole and in parts. These functions run in the side processes of `review_desk`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from waybill.errors import NotFound, Refused
from waybill.messages import msg
from waybill.web.languages import LANGUAGES
from waybill.web.layout import Frame, render
from waybill_convert.pages.line_windows import window_of
from waybill_convert.pages.review_content import Draft, Review, ReviewSubject, shown
from waybill_convert.pages.review_history import ShownChange, compared
from waybill_convert.review_work import loaded, reviser_of
from waybill_convert.revision_models import Json
from waybill_documents.mapping_files import MappingFiles


def whole_page(
    content: bytes | None,
    files: MappingFiles | None,
    subject: ReviewSubject,
    draft: Draft,
    frame: Frame,
    language: str,
    may_write: bool,
    revise: bool,
) -> str:
    """The page, with the window of lines that the draft asks for. `revise` says whether to apply the corrections."""
    record = loaded(content) if content is not None else None
    if revise and record is not None:
        draft = _revised(files, record, draft, language)
    review = _shown(files, subject, record, draft, language, may_write=may_write)
    return render("convert/review.html", LANGUAGES[language], page=frame, review=review)


def lines(
    content: bytes, files: MappingFiles | None, subject: ReviewSubject, at: str, language: str, may_write: bool
) -> dict[str, Any]:
    """One window of lines: its rows, and the boxes on the document's pages, by page."""
    from waybill_convert.pages.review_pages import marks

    review = _shown(files, subject, loaded(content), Draft(at=(at,)), language, may_write=may_write)
    wanted = window_of(at)
    windows = (window for table in review.seen.tables for window in table.windows)
    found = next((each for each in windows if wanted is not None and each.path == wanted.path), None)
    if found is None or found.rows is None:
        raise NotFound(msg("convert.review.no_lines"))
    boxes = marks(cell for row in found.rows for cell in row.cells) if review.leaves else {}
    words = LANGUAGES[language]
    return {
        "rows": render("convert/review_rows.html", words, review=review, rows=found.rows),
        "boxes": {page: render("convert/review_boxes.html", words, boxes=its) for page, its in boxes.items()},
        "doubtful": found.doubtful,
    }


def check(
    content: bytes | None,
    files: MappingFiles | None,
    subject: ReviewSubject,
    draft: Draft,
    language: str,
    revise: bool,
) -> dict[str, Any]:
    """What corrections would change on a page that shows these windows, and the problems that would remain."""
    subject = replace(subject, view=replace(subject.view, source_kept=False))  # the document's pages stay as they are
    record = loaded(content) if content is not None else None
    if revise and record is not None:
        draft = _revised(files, record, draft, language)
    after = _shown(files, subject, record, draft, language, may_write=True)
    old, new = _Facts(record), _Facts(draft.revised.record if draft.revised is not None else record)
    typed = {path for path, _ in draft.typed}
    return {
        "values": [
            {"id": cell.id, "text": cell.text, "look": cell.look, "says": cell.says}
            for cell in after.seen.cells()
            if cell.path in typed or old.of(cell.path) != new.of(cell.path)
        ],
        "problems": render("convert/review_problems.html", LANGUAGES[language], review=after),
        "doubtful": after.seen.doubtful,
        "windows": {window.path: window.doubtful for table in after.seen.tables for window in table.windows},
        "news": after.news,
    }


def changes(before: bytes, after: bytes, files: MappingFiles | None, language: str) -> list[ShownChange]:
    """The differences between two revisions, in words."""
    from waybill_convert.differences import differences

    record = loaded(after)
    return compared(reviser_of(files), record, differences(loaded(before), record), LANGUAGES[language])


class _Facts:
    """What the look of a value depends on. Somebody is typing, and this is cheaper than to show the old record too."""

    def __init__(self, record: Json | None) -> None:
        given = record or {"data": {}, "provenance": {"fields": {}, "tables": {}}}
        self._data, self._provenance = given["data"], given["provenance"]
        self._wrong: dict[str, str] = {}
        for finding in given.get("findings") or ():
            if finding.get("path"):
                self._wrong.setdefault(finding["path"], finding["message"])

    def of(self, path: str) -> tuple[object, ...]:
        table, _, rest = path.partition("[")
        index, _, column = rest.partition("].")
        values, origins, name = self._data, self._provenance["fields"], path
        if index:
            values, origins = self._data[table][int(index)], self._provenance["tables"][table][int(index)]
            name = column
        origin = origins.get(name, {})
        return values.get(name), origin.get("confidence"), origin.get("rule"), self._wrong.get(path)


def _revised(files: MappingFiles | None, record: Json, draft: Draft, language: str) -> Draft:
    try:
        return replace(draft, revised=reviser_of(files).revise(record, draft.typed))
    except Refused as refused:  # a note says why, and the corrections stay in the form
        return replace(draft, note=draft.note or LANGUAGES[language].explain(refused))


def _shown(
    files: MappingFiles | None,
    subject: ReviewSubject,
    record: Json | None,
    draft: Draft,
    language: str,
    *,
    may_write: bool,
) -> Review:
    return shown(reviser_of(files), subject, record, draft, LANGUAGES[language], may_write=may_write)
