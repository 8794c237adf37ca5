"""Chooses the mapping for a PDF, for a caller who names none.

An embedded invoice decides at once if its name is one of the standards', so that it is meant to be read. Any other one
counts if the pages do not decide: programs attach UBL that says more or less than the standard. Pages are read until
one mapping fits and no other one is about to; what was read is handed on, so that the extraction reads no page a second
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2

from waybill_documents import hybrid
from waybill_documents.candidates import Candidates, Ranking
from waybill_documents.catalogue import AUTO
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.word_reader import pages
from waybill_documents.stages import Stages
from waybill_documents.text_lines import Lines, lines_of

MOST_OFFERED = 10
"""The most candidates that are offered to a person."""


@dataclass(slots=True)
class LookedAt:
    """What a PDF has that a mapping can be recognised by, and the ranking by that."""

    ranking: Ranking
    embedded: hybrid.EmbeddedInvoice | None
    lines: list[Lines]
    """The pages that were read for it."""
    more: Iterator[Page]
    """The pages after them."""
    is_invoice: bool = False
    """Whether it is an e-invoice, in a PDF or without one, so that its pages do not count."""

    @property
    def words(self) -> int:
        return sum(len(each.page.words) for each in self.lines)


@dataclass(slots=True)
class ChosenMapping:
    """The mapping, why it was chosen, and what was read until then."""

    loaded: LoadedMapping
    recognition: dict[str, Any]
    embedded: hybrid.EmbeddedInvoice | None
    pages: Iterator[Page | Lines]
    """All pages from the first: those that were read for the choice, as lines, and then the others."""


def look_at(document: pypdfium2.PdfDocument, candidates: Candidates, limits: PdfLimits, stages: Stages) -> LookedAt:
    """Look for whatever speaks for one of the candidates."""
    unread = stages.through("words", pages(document, limits))
    embedded, unreadable = _embedded(document, candidates, limits, stages)
    if embedded is not None and hybrid.has_standard_name(embedded):
        return LookedAt(candidates.by_attachment(), embedded, [], unread, is_invoice=True)
    read: list[Lines] = []
    ranking = _by_pages(unread, candidates, read, stages)
    if embedded is not None and len(ranking.best) != 1:
        return LookedAt(candidates.by_attachment(), embedded, read, unread, is_invoice=True)
    if unreadable is not None and not ranking.best:
        raise unreadable
    return LookedAt(ranking, None, read, unread)


def invoice_of(candidates: Candidates) -> LookedAt:
    """What speaks for the candidates in an e-invoice that is no part of a PDF."""
    return LookedAt(candidates.by_attachment(), None, [], iter(()), is_invoice=True)


def choose(document: pypdfium2.PdfDocument, candidates: Candidates, limits: PdfLimits, stages: Stages) -> ChosenMapping:
    """Choose the mapping. Raises DocumentRejected NOT_RECOGNISED, with the nearest ones, if none or several fit."""
    return _chosen(look_at(document, candidates, limits, stages), candidates)


def choose_for_invoice(candidates: Candidates) -> ChosenMapping:
    """Choose the mapping for an e-invoice that is no part of a PDF."""
    return _chosen(invoice_of(candidates), candidates)


def _chosen(looked: LookedAt, candidates: Candidates) -> ChosenMapping:
    ranking = looked.ranking
    if len(ranking.best) != 1:
        raise not_recognised(looked)
    [best] = ranking.best
    runner_up = ranking.runner_up
    recognition = {
        "requested": AUTO,
        "score": best.score,
        "by": "attachment" if looked.is_invoice else "phrases",
        "pages": len(looked.lines),
        "candidates": len(candidates.all),
        "runner_up": runner_up.to_json() if runner_up is not None else None,
    }
    return ChosenMapping(best.candidate.load(), recognition, looked.embedded, _all_pages(looked))


def not_recognised(looked: LookedAt) -> DocumentRejected:
    """Why nothing was chosen, with the candidates that a person can choose from."""
    ranking = looked.ranking
    if not looked.words and not looked.is_invoice:
        return DocumentRejected(FaultCode.NO_TEXT, DocumentMessage("pdf.no_text"))
    offered = [each.to_json() for each in ranking.entries[:MOST_OFFERED]]
    if ranking.best:
        titles = [each.candidate.title for each in ranking.best[:MOST_OFFERED]]
        score = ranking.best[0].score
        says = DocumentMessage("recognition.tie", titles=titles, score=score, candidates=offered)
    else:
        near = [each.candidate.title for each in ranking.entries[:3] if each.score]
        says = DocumentMessage("recognition.nothing", count=len(ranking.entries), near=near or None, candidates=offered)
    return DocumentRejected(FaultCode.NOT_RECOGNISED, says)


def _all_pages(looked: LookedAt) -> Iterator[Page | Lines]:
    read, looked.lines = looked.lines[::-1], []
    while read:
        yield read.pop()  # so that nobody keeps what the extraction is done with
    yield from looked.more


def _embedded(
    document: pypdfium2.PdfDocument, candidates: Candidates, limits: PdfLimits, stages: Stages
) -> tuple[hybrid.EmbeddedInvoice | None, DocumentRejected | None]:
    """The embedded invoice, or why it cannot be read. The printed page may do in that case."""
    if not candidates.reads_embedded:
        return None, None
    with stages.timed("attachment"):
        try:
            return hybrid.embedded_in(document, limits), None
        except DocumentRejected as fault:
            return None, fault


def _by_pages(unread: Iterable[Page], candidates: Candidates, read: list[Lines], stages: Stages) -> Ranking:
    found: set[str] = set()
    with stages.timed("recognise"):
        ranking = candidates.by_phrases(found)
    for page in unread:
        with stages.timed("lines"):
            lines = lines_of(page)
        read.append(lines)
        with stages.timed("recognise"):
            news = candidates.index.found(lines) - found
            if news:
                found |= news
                ranking = candidates.by_phrases(found)
            if ranking.is_settled:
                break
    return ranking
