"""The content of the review page: what was read, the corrections that are not saved yet, and earlier revisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from waybill.errors import Refused
from waybill.web.languages import Language
from waybill_convert.pages.fault_words import fault_words
from waybill_convert.pages.line_windows import window_of, windows_of
from waybill_convert.pages.recognition_words import recognition_words
from waybill_convert.pages.review_history import HistoryEntry, history, told
from waybill_convert.reviser import MappingReviser
from waybill_convert.revision_models import Json, Revised, Revision, Typed
from waybill_convert.status import Status
from waybill_convert.views import ConversionView

if TYPE_CHECKING:  # the document library is imported with the first review: see `reviser`
    from waybill_convert.pages.review_pages import Leaf
    from waybill_convert.pages.shown_record import ShownCell, ShownRecord, Wrong
    from waybill_documents.mapping.loader import LoadedMapping


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """The conversion and the revision that the page shows."""

    view: ConversionView
    latest: int
    number: int
    revisions: list[Revision]
    first_xml: bool
    """Whether revision 0 has XML."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Corrections that are not saved yet."""

    typed: tuple[Typed, ...] = ()
    revised: Revised | None = None
    """What would be saved; None if that cannot be computed."""
    note: str = ""
    edit: str = ""
    """The path of the value or line to show a form for."""
    at: tuple[str, ...] = ()
    """Paths on the lines to show."""


_SHOWN_DOUBTS = 10


class Note(NamedTuple):
    text: str
    look: str = ""
    icon: str = "hold"


class ShownAttachment(NamedTuple):
    text: str
    href: str


class FormField(NamedTuple):
    """A value in the form."""

    id: str
    path: str
    label: str
    text: str
    choices: list[str]


class EditForm(NamedTuple):
    title: str
    cells: list[FormField]


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that the template shows."""

    id: str
    name: str
    mapping: str
    recognised: str
    """Why the document chose its mapping; empty if it was named."""
    number: int
    revised: str
    by: str
    at: str
    at_words: str
    ago: str
    approved: str
    """Who said that a result is right although values in it are in doubt."""
    sureness: str
    editable: bool
    download: str
    xml: str
    here: str
    here_with: str
    notes: list[Note]
    doubts: list[Wrong]
    """What is in doubt, so that a person has to look first."""
    doubts_title: str
    more_doubts: str
    can_approve: bool
    problems: list[Wrong]
    problems_title: str
    can_accept: bool
    editing: EditForm | None
    pending: list[Typed]
    lines_at: tuple[str, ...]
    seen: ShownRecord
    leaves: list[Leaf]
    no_paper: str
    attachments: list[ShownAttachment]
    attachments_title: str
    history: list[HistoryEntry]
    trace_url: str | None
    hint: str
    news: str


def shown(
    reviser: MappingReviser,
    page: ReviewSubject,
    record: Json | None,
    draft: Draft,
    language: Language,
    *,
    may_write: bool,
) -> Review:
    """Everything that the page shows. The record is None if nothing could be read."""
    return _Showing(reviser, page, record, draft, language, may_write).review()


class _Showing:
    def __init__(
        self,
        reviser: MappingReviser,
        page: ReviewSubject,
        record: Json | None,
        draft: Draft,
        language: Language,
        may_write: bool,
    ) -> None:
        from waybill_convert.pages.review_pages import leaves
        from waybill_convert.pages.review_values import see
        from waybill_convert.pages.shown_record import ShownRecord

        self._page, self._record, self._draft, self._language = page, record, draft, language
        self._notes: list[Note] = [Note(draft.note)] if draft.note else []
        self._loaded = self._find_mapping(reviser)
        record = draft.revised.record if draft.revised is not None else record
        changed = {path for path, _ in draft.typed}
        windows = windows_of(draft.edit or "", *draft.at)
        self._waits = page.view.status is Status.NEEDS_REVIEW and page.number == page.latest
        self._doubts = self._in_doubt() if self._waits else []
        self._can_approve = self._waits and may_write
        self._seen = ShownRecord([], [], [], [])
        if record:
            read = draft.revised.extracted if draft.revised is not None else None
            self._seen = see(
                self._loaded, record, language, changed=changed, windows=windows, extracted=read, doubts=self._doubts
            )
        self._refused = self._refusals()
        source = f"/api/jobs/{page.view.id}/pages"
        self._leaves = leaves(self._seen, record, language, source) if record and page.view.source_kept else []
        self._editable = (
            may_write
            and page.number == page.latest
            and self._loaded is not None
            and self._loaded.mapping.embedded is None
        )

    def review(self) -> Review:
        page, language, seen = self._page, self._language, self._seen
        last = next((each for each in page.revisions if each.number == page.number), None)
        moment = last.created_at if last else page.view.finished_at
        download = f"/api/jobs/{page.view.id}/revisions/{page.number}/download" if self._has_xml(page.number) else ""
        query = urlencode({"revision": page.number} if page.number != page.latest else {})
        problems = [*self._refused, *seen.problems]
        attachments = list(self._attachments())
        return Review(
            id=str(page.view.id),
            name=page.view.original_name,
            mapping=page.view.mapping,
            recognised=recognition_words(page.view, language),
            number=page.number,
            revised=language.say("convert.review_page.revision", number=page.number) if page.number else "",
            by=told(last.author, language) if last else "",
            at=moment.isoformat() if moment else "",
            at_words=language.exactly(moment) if moment else "",
            ago=language.ago(moment, datetime.now(UTC)) if moment else "",
            approved=self._approved(),
            sureness=self._sureness(),
            editable=self._editable,
            download=download,
            xml=download,
            here=f"/review/{page.view.id}{f'?{query}' if query else ''}",
            here_with=f"/review/{page.view.id}?{f'{query}&' if query else ''}",
            notes=self._all_notes(),
            doubts=self._shown_doubts(),
            doubts_title=language.say("convert.review_page.in_doubt", count=len(self._doubts)) if self._doubts else "",
            more_doubts=self._more_doubts(),
            can_approve=self._can_approve,
            problems=problems,
            problems_title=language.say("convert.review_page.problems", count=len(problems)),
            can_accept=self._editable and not self._refused and bool(seen.problems),
            editing=self._editing(),
            pending=[each for each in self._draft.typed if not self._is_edited(each[0])],
            lines_at=self._draft.at or ((self._draft.edit,) if self._draft.edit else ()),
            seen=seen,
            leaves=self._leaves,
            no_paper=self._no_paper(),
            attachments=attachments,
            attachments_title=language.say("convert.review_page.attachments", count=len(attachments)),
            trace_url=page.view.trace_url,
            history=history(page.view, page.revisions, page.number, self._loaded, language, first_xml=page.first_xml),
            hint=language.say("convert.review_page.hint") if self._editable else "",
            news=self._news(),
        )

    def _attachments(self) -> Iterator[ShownAttachment]:
        """The files that are embedded in the document, while it is stored."""
        if self._record is None or not self._page.view.source_kept:
            return
        for each in self._record.get("source", {}).get("attachments", ()):
            size = self._language.size(each["bytes"])
            text = self._language.say("convert.review_page.attachment", name=each["name"], size=size)
            yield ShownAttachment(text, f"/api/jobs/{self._page.view.id}/attachments/{each['number']}")

    def _find_mapping(self, reviser: MappingReviser) -> LoadedMapping | None:
        if self._record is None:
            return None
        try:
            found = reviser.mapping_of(self._record)
        except Refused as refused:
            self._notes.append(Note(self._language.explain(refused)))
            return None
        if found.mapping.embedded is not None:
            self._notes.append(Note(self._language.say("convert.review_page.embedded")))
        return found

    def _all_notes(self) -> list[Note]:
        view, notes = self._page.view, list(self._notes)
        if view.status is Status.FAILED and view.error is not None and not self._seen.problems:
            notes.insert(0, Note(fault_words(view.error, self._language), "bad", "failed"))
        if self._page.number != self._page.latest:
            notes.append(Note(self._language.say("convert.review_page.earlier", number=self._page.number)))
        return notes

    def _in_doubt(self) -> list[str]:
        """The values that nobody has looked at yet: those in the record that are not being corrected."""
        review = (self._record or {}).get("review") or {}
        changes = self._draft.revised.changes if self._draft.revised is not None else ()
        corrected = {change["path"] for change in changes}
        return [path for path in review.get("doubts") or () if path not in corrected]

    def _shown_doubts(self) -> list[Wrong]:
        from waybill_convert.pages.value_labels import label

        return self._leads([(label(self._loaded, path, self._language), path) for path in self._doubts[:_SHOWN_DOUBTS]])

    def _more_doubts(self) -> str:
        more = len(self._doubts) - _SHOWN_DOUBTS
        return self._language.say("convert.review_page.more_in_doubt", count=more) if more > 0 else ""

    def _refusals(self) -> list[Wrong]:
        from waybill_documents.messages import tell

        refused = self._draft.revised.refused if self._draft.revised is not None else ()
        return self._leads(
            [(tell(finding, self._language.code, self._loaded), finding.get("path") or "") for finding in refused]
        )

    def _leads(self, said: Sequence[tuple[str, str]]) -> list[Wrong]:
        """Sentences that lead to the values at these paths."""
        from waybill_convert.pages.shown_record import Wrong, id_of

        sent = {cell.path for cell in self._seen.cells()}
        return [
            Wrong(text, f"#v-{id_of(path)}", id_of(path), "" if path in sent or window_of(path) is None else path)
            for text, path in said
        ]

    def _no_paper(self) -> str:
        """Why there are no pages to see."""
        source = (self._record or {}).get("source", {})
        why = "no_page_image" if "sheets" in source else "no_pages" if source.get("kind") == "xml" else "no_paper"
        return self._language.say(f"convert.review_page.{why}")

    def _has_xml(self, number: int) -> bool:
        return number > 0 or self._page.first_xml

    def _approved(self) -> str:
        review = self._page.view.review
        if review is None or not review.approved_by or self._page.latest:
            return ""  # a revision names its author
        return self._language.say("convert.review_page.approved", by=told(review.approved_by, self._language))

    def _sureness(self) -> str:
        if self._record is None:
            return ""
        count = self._seen.doubtful
        return (
            self._language.say("convert.review_page.doubtful", count=count)
            if count
            else self._language.say("convert.review_page.all_sure")
        )

    def _news(self) -> str:
        count = len(self._refused) + len(self._seen.problems)
        return (
            self._language.say("convert.review_page.problems", count=count)
            if count
            else self._language.say("convert.review_page.fine")
        )

    def _is_edited(self, path: str) -> bool:
        edit = self._draft.edit
        return bool(edit) and (path == edit or path.startswith(f"{edit}."))

    def _editing(self) -> EditForm | None:
        """The form for one value or one line, for browsers without scripts."""
        edit = self._draft.edit
        if not edit or not self._editable:
            return None
        listed = {each.of: each.texts for each in self._seen.choices}
        cells = [
            FormField(cell.id, cell.path, cell.label, cell.text, self._options(cell, listed))
            for cell in self._seen.cells()
            if self._is_edited(cell.path) and "made" not in cell.look
        ]
        if not cells:
            return None
        title = cells[0].label if len(cells) == 1 else self._line_title(edit)
        return EditForm(title, cells)

    def _line_title(self, edit: str) -> str:
        number = edit.partition("[")[2].rstrip("]")
        return self._language.say("convert.review_page.edit_line", number=int(number) + 1)

    @staticmethod
    def _options(cell: ShownCell, listed: dict[str, list[str]]) -> list[str]:
        texts = listed.get(cell.list, [])
        return list(dict.fromkeys([cell.text, *texts])) if texts else []
