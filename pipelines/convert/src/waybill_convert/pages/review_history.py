"""The history of a conversion's revisions, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill.errors import Refused
from waybill.web.languages import Language
from waybill_convert.reviser import MappingReviser
from waybill_convert.revision_models import Difference, Json, Revision
from waybill_convert.views import ConversionView

if TYPE_CHECKING:  # the document library is imported with the first review: see `reviser`
    from waybill_documents.mapping.loader import LoadedMapping

_SHOWN_CHANGES = 20


class ShownChange(NamedTuple):
    label: str
    before: str
    after: str


class HistoryEntry(NamedTuple):
    """A revision in the history."""

    number: int
    title: str
    by: str
    at: str
    at_words: str
    ago: str
    shown: bool
    download: str
    changes: list[ShownChange]
    more: str


def told(author: str, language: Language) -> str:
    """The name of a revision's author."""
    kind, _, name = author.partition(":")
    return name if kind == "key" and name else language.say("convert.review_page.somebody")


def history(
    view: ConversionView,
    revisions: Sequence[Revision],
    shown: int,
    loaded: LoadedMapping | None,
    language: Language,
    *,
    first_xml: bool,
) -> list[HistoryEntry]:
    """The revisions, latest first; empty if nothing was ever corrected."""
    if not revisions:
        return []
    past = [_past(view, revision, shown, loaded, language) for revision in reversed(revisions)]
    return [*past, _first(view, shown, language, first_xml=first_xml)]


def _past(
    view: ConversionView, revision: Revision, shown: int, loaded: LoadedMapping | None, language: Language
) -> HistoryEntry:
    number = revision.number
    changes = [
        ShownChange(
            _label(loaded, change["path"], language),
            _value(loaded, change["path"], change["from"], language),
            _value(loaded, change["path"], change["to"], language),
        )
        for change in revision.changes[:_SHOWN_CHANGES]
    ]
    more = len(revision.changes) - len(changes)
    return HistoryEntry(
        number,
        language.say("convert.review_page.revision", number=number),
        told(revision.author, language),
        revision.created_at.isoformat(),
        language.exactly(revision.created_at),
        language.ago(revision.created_at, datetime.now(UTC)),
        number == shown,
        f"/api/jobs/{view.id}/revisions/{number}/download",
        changes,
        language.say("convert.review_page.more_changes", count=more) if more else "",
    )


def _first(view: ConversionView, shown: int, language: Language, *, first_xml: bool) -> HistoryEntry:
    moment = view.finished_at or view.created_at
    return HistoryEntry(
        0,
        language.say("convert.review_page.as_read"),
        language.say("convert.review_page.converter"),
        moment.isoformat(),
        language.exactly(moment),
        language.ago(moment, datetime.now(UTC)),
        shown == 0,
        f"/api/jobs/{view.id}/revisions/0/download" if first_xml else "",
        [],
        "",
    )


def compared(
    reviser: MappingReviser, record: Json, differences: Sequence[Difference], language: Language
) -> list[ShownChange]:
    """The differences between two revisions, in words."""
    try:
        loaded: LoadedMapping | None = reviser.mapping_of(record)
    except Refused:
        loaded = None
    return [
        ShownChange(
            _label(loaded, each.path, language),
            _value(loaded, each.path, each.before, language),
            _value(loaded, each.path, each.after, language),
        )
        for each in differences
    ]


def _label(loaded: LoadedMapping | None, path: str, language: Language) -> str:
    from waybill_convert.pages.value_labels import label

    return label(loaded, path, language)


def _value(loaded: LoadedMapping | None, path: str, value: Any, language: Language) -> str:
    from waybill_convert.pages.value_labels import printed

    return printed(loaded, path, value) or language.say("convert.review_page.nothing")
