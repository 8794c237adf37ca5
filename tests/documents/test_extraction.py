"""A document is recognised and read page by page, and every value has its provenance."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from support.invoice_comparison import pt_simon
from support.invoices import print_invoice, reference_invoice
from support.pages import extract_file, extract_pages, page, table
from waybill_documents.extraction import extract
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page
from waybill_documents.mapping.model import Mapping
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.stages import Stages


def mapping(**more: Any) -> Mapping:
    given = {"format": 1, "name": "test", "title": "Test", "fields": {"it": {"label": "Total"}}}
    return Mapping.model_validate(given | more)


@pytest.mark.parametrize(
    "rule",
    [
        {"all": ["PT SIMON", "INVOICE"]},
        {"any": ["Rechnung", "invoice"]},
        {"none": ["Rechnung"]},
        {"all": ["NPWP"], "any": ["invoice"], "none": ["Proforma"]},
    ],
)
def test_a_document_that_is_recognised(rule: dict[str, Any]) -> None:
    found = extract_pages(
        mapping(recognise=rule), page((30, 100, "PT. Simon  Jaya: Invoice Total : 5")), page((30, 9, "NPWP"), number=2)
    )
    assert found.extracted.fields["it"].value == "5"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"all": ["PT SIMON", "NPWP"]}, "it lacks “NPWP”"),
        ({"any": ["Rechnung", "Facture"]}, "it lacks “Rechnung / Facture”"),
        ({"none": ["invoice"]}, "it has “invoice”"),
    ],
)
def test_a_document_that_is_not(rule: dict[str, Any], why: str) -> None:
    with pytest.raises(DocumentRejected) as caught:
        extract_pages(mapping(recognise=rule), page((30, 100, "PT Simon Invoice")))
    assert caught.value.code is FaultCode.NOT_RECOGNISED
    assert why in caught.value.message


def test_pictures_of_pages_are_said_to_be_that() -> None:
    with pytest.raises(DocumentRejected) as caught:
        extract_pages(mapping(), page(), page(number=2))
    assert caught.value.code is FaultCode.NO_TEXT


def test_the_sizes_of_all_pages_are_told() -> None:
    found = extract_pages(mapping(), page((1, 1, "a")), page(number=2, width=842, height=595))
    assert [(size.number, size.width, size.height, size.turn) for size in found.pages] == [
        (1, 595, 842, 0),
        (2, 842, 595, 0),
    ]


def test_the_data_is_plain() -> None:
    found = extract_pages(pt_simon_like(), page(*table(["No    Nama", "1     Pipa", "Total : 5"])))
    assert found.extracted.data() == {"it": "5", "pages": 1, "lines": [{"no": 1, "name": "Pipa"}]}


def pt_simon_like() -> Mapping:
    columns = {"no": {"header": "No", "type": "integer"}, "name": {"header": "Nama"}}
    lines = {"columns": columns, "row": {"begins": "no"}, "end": "Total"}
    return mapping(locale={"base": "id"}, tables={"lines": lines})


def test_every_stage_is_timed(tmp_path: Path) -> None:
    ticks = iter(range(10**9))
    stages = Stages(lambda: float(next(ticks)))
    given = [page(*table(["No    Nama", "1     Pipa", "Total : 5"]))]
    extract(stages.through("words", given), 1, pt_simon_like(), stages)
    assert list(stages.milliseconds) == ["words", "lines", "rows", "fields", "values"]


class Watched(Page):
    """A page that counts how many of its kind are in memory."""

    __slots__ = ("__weakref__",)


def test_pages_are_asked_for_one_ahead_and_then_forgotten() -> None:
    alive: WeakSet[Page] = WeakSet()
    most = 0

    def given() -> Iterator[Page]:
        nonlocal most
        for number in range(1, 30):
            plain = page((30, 100, f"Total : {number}"), number=number)
            watched = Watched(plain.number, plain.width, plain.height, plain.turn, plain.words)
            alive.add(watched)
            most = max(most, len(alive))
            yield watched
            del watched

    extract(given(), 29, mapping(), Stages(lambda: 0.0))
    assert most <= 4


def test_memory_grows_with_the_rows_and_not_with_the_pages(tmp_path: Path) -> None:
    """The reference invoice has 17 pages and some 11,000 words; little more than the words of its rows is kept."""
    path = tmp_path / "reference.pdf"
    path.write_bytes(print_invoice(*reference_invoice()))
    tracemalloc.start()
    try:
        with opened(path, PdfLimits()) as document:
            found = extract(pages(document, PdfLimits()), len(document), pt_simon(), Stages(lambda: 0.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.extracted.tables["lines"]) == 510
    assert peak < 12_000_000


def test_real_documents_of_others_can_be_looked_at(shared_data: Path) -> None:
    """Reading any document by a mapping for another kind ends with a clear answer."""
    for path in sorted((shared_data / "invoices").rglob("*.pdf")):
        with pytest.raises(DocumentRejected) as caught:
            extract_file(pt_simon(), path)
        assert caught.value.code in (FaultCode.NOT_RECOGNISED, FaultCode.NO_TEXT), path
