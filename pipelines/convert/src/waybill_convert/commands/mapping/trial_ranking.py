"""Which mapping a document would choose: what `waybill mapping try` shows when no mapping is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_line, styled
from waybill_convert.commands.mapping.document_argument import kind_of
from waybill_documents.candidates import Candidate, Candidates, Ranked
from waybill_documents.catalogue import names
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_documents.mapping_choice import LookedAt, invoice_of, look_at, not_recognised
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.stages import Stages

_MOST_SHOWN = 10


def candidates_with(own: Iterable[LoadedMapping]) -> Candidates:
    """The shipped mappings and these. One of these takes the place of a shipped one with its name."""
    found = {name: loaded for name in names() if (loaded := shipped(name)) is not None}
    found |= {loaded.mapping.name: loaded for loaded in own}
    return Candidates(Candidate.of(loaded) for loaded in found.values())


def ranking_of(source: Path, candidates: Candidates) -> LookedAt:
    """Look for what the candidates are recognised by. Raises `DocumentRejected` for what cannot be read."""
    kind = kind_of(source)
    if kind == "xml":
        return invoice_of(candidates)
    if kind != "pdf":
        raise DocumentRejected(FaultCode.NOT_RECOGNISED, DocumentMessage("recognition.pdf_only"))
    with opened(source, PdfLimits()) as document:
        return look_at(document, candidates, PdfLimits(), Stages(lambda: 0.0))


def chosen_of(looked: LookedAt) -> LoadedMapping | None:
    """The mapping that the document chooses; None if there is no best one."""
    return looked.ranking.best[0].candidate.load() if len(looked.ranking.best) == 1 else None


def print_ranking(looked: LookedAt) -> None:
    """Print the candidates, the best first, and what each one lacks."""
    entries = looked.ranking.entries
    columns = [Column("SCORE", right=True), Column("NAME", most=30), Column("", least=30, wraps=True)]
    print_table(columns, [_row(looked, each) for each in entries[:_MOST_SHOWN]])
    if len(entries) > _MOST_SHOWN:
        print_line(styled(f"… and {len(entries) - _MOST_SHOWN} more", "dim"))
    print_line()


def ranking_json(looked: LookedAt) -> list[dict[str, Any]]:
    """The candidates for programs."""
    return [
        {**each.to_json(), "fits": each.fits, "missing": list(each.missing), "unwanted": list(each.unwanted)}
        for each in looked.ranking.entries
    ]


def refusal_json(looked: LookedAt) -> dict[str, Any]:
    """What `--json` prints of a document that chooses no mapping."""
    fault: DocumentRejected = not_recognised(looked)
    return {
        "converted": False,
        "recognised": False,
        "fault": {"code": fault.code.value, "message": fault.message},
        "findings": [finding.to_json() for finding in fault.findings],
        "ranking": ranking_json(looked),
    }


def _row(looked: LookedAt, each: Ranked) -> Sequence[Text]:
    best = each in looked.ranking.best
    style = ("bold green" if len(looked.ranking.best) == 1 else "yellow") if best else ""
    return styled(each.score, style), styled(each.candidate.name, style), styled(", ".join(_remarks(looked, each)))


def _remarks(looked: LookedAt, each: Ranked) -> Iterator[str]:
    if each in looked.ranking.best:
        yield "chosen" if len(looked.ranking.best) == 1 else "fits as well as another one"
    elif each.candidate.embedded is not None and not looked.is_invoice:
        yield "needs an embedded invoice"
    elif each.fits:
        yield "fits"
    else:
        if each.missing:
            yield f"lacks {', '.join(f'“{phrase}”' for phrase in each.missing)}"
        if each.unwanted:
            yield f"has {', '.join(f'“{phrase}”' for phrase in each.unwanted)}"
        if not each.candidate.phrases.most and each.candidate.embedded is None:
            yield "names no words to recognise it by"
