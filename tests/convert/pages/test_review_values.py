"""The values of a record are shown the same way, whether they were read from the record or come from a correction."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from importlib import resources
from pathlib import Path

import pytest

from support.reviewed_invoices import RIGHT, Read, broken, good
from support.sheets import Rows, loaded, read_sheets, workbook
from waybill.web.languages import LANGUAGES
from waybill_convert.pages.review_pages import leaves
from waybill_convert.pages.review_values import see
from waybill_convert.reviser import MappingReviser
from waybill_convert.revision_models import Typed
from waybill_documents import hybrid
from waybill_documents.catalogue import names
from waybill_documents.document_reader import read_pdf
from waybill_documents.hybrid import EmbeddedInvoice
from waybill_documents.mapping import loader
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.stages import Stages
from waybill_documents.values import Extracted

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "invoices"
HYBRID = SHARED / "facturx" / "EN16931_Einfach.pdf"

CORRECTIONS: list[list[Typed]] = [
    [],
    [("subtotal", RIGHT)],
    [("lines[1].qty", "7")],
    [("lines[0].amount", ""), ("buyer_name", "PT Lain")],
    [("lines[2].price", "nothing")],
    [("date", "7 Agustus 2025"), ("invoice_discount", "1")],
]


@pytest.mark.parametrize("document", [good, broken], ids=["good", "broken"])
@pytest.mark.parametrize("typed", CORRECTIONS, ids=lambda typed: " ".join(path for path, _ in typed) or "nothing")
def test_a_correction_is_shown_as_the_record_it_makes(document: object, typed: list[Typed]) -> None:
    read: Read = document()  # type: ignore[operator]
    reviser = MappingReviser()
    revised = reviser.revise(json.loads(read.record), typed)
    mapping = reviser.mapping_of(revised.record)
    stored = json.loads(json.dumps(revised.record))
    for language in LANGUAGES.values():
        assert see(mapping, revised.record, language, extracted=revised.extracted) == see(mapping, stored, language)


@pytest.mark.skipif(not HYBRID.exists(), reason="there is no ../shared/data beside the repository")
def test_a_difference_between_page_and_embedded_invoice_is_a_problem_with_a_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed(embedded: EmbeddedInvoice) -> Extracted:
        extracted = read_embedded(embedded)
        extracted.fields["number"].value = "471103"
        extracted.tables["lines"][1]["net"].value = Decimal("275.10")
        extracted.fields["buyer_name"].value = "Kunden AG"
        return extracted

    read_embedded = hybrid.extract
    monkeypatch.setattr(hybrid, "extract", changed)
    mapping = loader.shipped("en16931_cii")
    assert mapping is not None
    record = json.loads(json.dumps(read_pdf(HYBRID, mapping, PdfLimits(), Stages(lambda: 0.0)).to_json()))
    record["findings"] = []
    shown = see(mapping, record, LANGUAGES["en"])
    assert [(problem.text, problem.goes) for problem in shown.problems] == [
        ("number: the page says 471102, the embedded invoice says 471103", "number"),
        ("line 2: net: the page says 275,00, the embedded invoice says 275.10", "lines.1.net"),
    ]
    cells = {cell.path: cell for cell in shown.cells()}
    for path in ("number", "lines[1].net"):
        assert "wrong" in cells[path].look
        assert cells[path].places
    assert "wrong" not in cells["gross"].look
    assert cells["gross"].places
    numbers = [leaf.number for leaf in leaves(shown, record, LANGUAGES["en"], "/pages") if leaf.boxes]
    assert numbers == [1, 2]


def test_a_prepared_reviser_loads_no_mapping_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reviser = MappingReviser()
    reviser.prepare(names())
    for name in ("shipped", "shipped_as"):
        monkeypatch.setattr(loader, name, lambda *asked: pytest.fail(f"{asked} was loaded again"))
    record = json.loads(good().record)
    assert reviser.mapping_of(record).mapping.name == record["mapping"]["name"]


def test_a_record_of_an_earlier_release_keeps_the_text_that_made_it() -> None:
    texts = resources.files("waybill_documents") / "mappings" / "pt_simon_invoice_v1" / "earlier"
    sha256 = hashlib.sha256((texts / "0.1.0.json").read_bytes()).hexdigest()
    reviser = MappingReviser()
    for wanted in (sha256, json.loads(good().record)["mapping"]["sha256"], sha256):
        record = {"mapping": {"name": "pt_simon_invoice_v1", "sha256": wanted}}
        assert reviser.mapping_of(record).sha256 == wanted


SHEET = {
    "fields": {
        "total": {"type": "decimal", "label": "Summe", "required": True},
        "vat": {"label": "UID", "required": True},
    },
    "tables": {
        "lines": {
            "columns": {"name": {"header": "Artikel"}, "amount": {"header": "Betrag", "type": "decimal"}},
            "row": {"begins": "amount"},
            "end": "Summe",
        }
    },
    "checks": {"total": {"expect": "sum(lines.amount) == total"}},
}


@pytest.mark.parametrize("known", [True, False])
def test_a_workbook_has_no_page_image_and_its_values_name_their_cells(tmp_path: Path, known: bool) -> None:
    rows: Rows = [["Artikel", "Betrag"], ["Rohr", 37.05], [None, None], ["Summe", 30]]
    mapping = loaded(**SHEET)
    reading = read_sheets(workbook(tmp_path / "a.xlsx", {"Blatt 1": rows}), mapping)
    record = json.loads(json.dumps(reading.to_json()))
    for language in LANGUAGES.values():
        shown = see(mapping if known else None, record, language)
        cells = {cell.path: cell for cell in shown.cells()}
        assert not any(cell.placed for cell in cells.values())
        assert "'Blatt 1'!B4" in cells["total"].says
        assert "'Blatt 1'!B2" in cells["lines[0].amount"].says
        assert shown.tables[0].windows[0].pages == []
        assert leaves(shown, record, language, "/pages") == []
        assert all(not problem.href.startswith(("#b-", "#page-")) for problem in shown.problems)
