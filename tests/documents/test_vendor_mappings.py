"""Reads invoices of real vendors by the shipped mappings and compares them with the results of other programs.

The PDFs and the JSON beside them belong to other projects and are not part of the repository.
"""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from support.pages import extract_pages, page, table
from waybill_documents.document_reader import read_data, read_pdf
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_documents.mapping.model import Mapping, XmlNode
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.reading import Reading
from waybill_documents.stages import Stages

VENDORS = {
    "AmazonWebServices": "amazon_web_services_v1",
    "AzureInterior": "azure_interior_v1",
    "FlipkartInvoice": "flipkart_v1",
    "QualityHosting": "quality_hosting_v1",
    "coolblue1": "coolblue_v1",
    "oyo": "oyo_v1",
}
NOT_ON_THE_PAGE = {
    "AzureInterior": {
        *(
            "bic",
            "customer_order_number",
            "date_end",
            "date_start",
            "mandate_id",
            "mobile",
            "partner_coc",
            "partner_ref",
        ),
        *("partner_street2", "partner_street3", "payment_unece_code", "purchase_order_id"),
    }
}
"""Values in their JSON that are not printed. They were made up for their tests; a mapping should not have them."""
BOTH = pytest.mark.parametrize(("invoice", "name"), VENDORS.items(), ids=VENDORS)


def mapping(name: str) -> LoadedMapping:
    loaded = shipped(name)
    assert loaded is not None
    return loaded


def reading_of(folder: Path, invoice: str, name: str) -> Reading:
    source = folder / "invoices" / "vendors" / f"{invoice}.pdf"
    return read_pdf(source, mapping(name), PdfLimits(), Stages(lambda: 0.0))


def as_ours(theirs: Any, ours: Any) -> Any:
    """A value of their JSON in our type. Their amounts are floats, dates are texts, and numbers are either."""
    if isinstance(ours, Decimal | int):
        return Decimal(str(theirs))
    if isinstance(ours, date):
        return date.fromisoformat(theirs)
    return theirs.strip() if isinstance(theirs, str) else theirs


@BOTH
def test_every_value_of_the_others_is_ours_too(shared_data: Path, invoice: str, name: str) -> None:
    [theirs] = json.loads((shared_data / "invoices" / "vendors" / f"{invoice}.json").read_text())
    reading = reading_of(shared_data, invoice, name)
    ours = reading.extracted.data()
    assert reading.findings == []
    for absent in NOT_ON_THE_PAGE.get(invoice, ()):
        del theirs[absent]
    lines = theirs.pop("lines", [])
    assert {key: as_ours(value, ours[key]) for key, value in theirs.items()} == {key: ours[key] for key in theirs}
    if not lines:
        return
    assert len(ours["lines"]) == len(lines)
    if invoice == "coolblue1":
        # The page has the levy under its article. They list it last; we keep the order of the page.
        lines.insert(1, lines.pop())
    for their_row, our_row in zip(lines, ours["lines"], strict=True):
        assert {key: as_ours(value, our_row[key]) for key, value in their_row.items()} == {
            key: our_row[key] for key in their_row
        }


@BOTH
def test_every_check_holds_and_proves_the_amount(shared_data: Path, invoice: str, name: str) -> None:
    reading = reading_of(shared_data, invoice, name)
    assert [result.name for result in reading.checks if result.passed is not True] == []
    assert reading.extracted.fields["amount"].confidence == 100


@BOTH
def test_what_is_read_stands_where_it_says(shared_data: Path, invoice: str, name: str) -> None:
    reading = reading_of(shared_data, invoice, name)
    sizes = {page["number"]: page for page in reading.source["pages"]}
    values = [
        *reading.extracted.fields.values(),
        *(cell for row in reading.extracted.tables["lines"] for cell in row.values()),
    ]
    placed = [place for value in values for place in value.places]
    assert len(placed) > 5
    for place in placed:
        left, top, right, bottom = place.box
        assert 0 <= left < right <= sizes[place.page]["width"]
        assert 0 <= top < bottom <= sizes[place.page]["height"]


@BOTH
def test_no_vendor_takes_the_invoice_of_another(shared_data: Path, invoice: str, name: str) -> None:
    for other in VENDORS.values():
        if other == name:
            continue
        with pytest.raises(DocumentRejected) as raised:
            reading_of(shared_data, invoice, other)
        assert raised.value.code is FaultCode.NOT_RECOGNISED


@BOTH
def test_the_xml_has_the_number_and_the_sum(shared_data: Path, invoice: str, name: str) -> None:
    reading = reading_of(shared_data, invoice, name)
    root = etree.fromstring(reading.xml(pretty=False))
    assert root.tag == "Invoice"
    assert root.findtext("Number") == reading.extracted.fields["invoice_number"].value
    assert Decimal(root.findtext("Totals/Gross") or "") == reading.extracted.fields["amount"].value
    assert len(root.findall("Lines/Line")) == len(reading.extracted.tables["lines"])


@BOTH
def test_what_is_answered_can_be_sent_back(shared_data: Path, tmp_path: Path, invoice: str, name: str) -> None:
    """The data of an answer gives the same XML when it is sent as JSON, as after a correction by a person."""
    reading = reading_of(shared_data, invoice, name)
    (tmp_path / "data.json").write_text(json.dumps(reading.to_json()["data"]))
    again = read_data(tmp_path / "data.json", mapping(name), Stages(lambda: 0.0))
    assert again.findings == []
    assert again.xml(pretty=True) == reading.xml(pretty=True)


def paths(node: XmlNode, above: str = "") -> list[str]:
    own = f"{above}/{node.name}"
    return [own, *(path for child in node.children for path in paths(child, own))]


def test_vendors_share_one_vocabulary_in_one_order() -> None:
    trees = [xml.root for name in VENDORS.values() if (xml := mapping(name).mapping.xml)]
    assert len(trees) == len(VENDORS)
    order: list[str] = []
    for tree in trees:
        for path in paths(tree):
            if path not in order:
                order.append(path)
    for one in trees:
        for other in trees:
            shared = [path for path in paths(one) if path in paths(other)]
            assert shared == [path for path in paths(other) if path in paths(one)]
    assert {path.rpartition("/")[0] for path in order} == {
        "",
        "/Invoice",
        "/Invoice/Buyer",
        "/Invoice/Lines",
        "/Invoice/Lines/Line",
        "/Invoice/Payment",
        "/Invoice/Seller",
        "/Invoice/Totals",
    }


def test_the_vocabulary_is_the_one_the_page_lists() -> None:
    page = (Path(__file__).parents[2] / "docs/mappings.md").read_text(encoding="utf-8")
    listed = set(
        re.findall(r"`([A-Z][A-Za-z]+)`", page[page.index("share one small vocabulary") :].partition("\n\n")[0])
    )
    trees = [xml.root for name in VENDORS.values() if (xml := mapping(name).mapping.xml)]
    assert {path.rpartition("/")[2] for tree in trees for path in paths(tree)} == listed


def test_the_parts_of_a_bundle_have_no_price() -> None:
    printed = """
FACTUUR.                                                  Coolblue B.V.
                                                          Weena 664
                                                          3012 CN Rotterdam
                                                          Nederland
                                                          KvK Rotterdam 24330087
                                                          BTW NL810433941B01
Factuurnummer: 700000002
Factuurdatum: 29 maart 2014
Artikel                        Aantal    Prijs per stuk    BTW    Prijs incl. BTW
Hoes voor laptop                  2        € 50,00         21%         € 100,00
Laptop 13'' + muis                1        € 21,00         21%          € 21,00
Laptop 13''                       1
Incl. Thuiskopieheffing           1                        21%           € 4,24
Muis                              1
                                          Exclusief BTW                € 100,00
                                          BTW 21%                       € 21,00
                                          Totaal                       € 121,00
Alles voor een glimlach.
"""
    read = extract_pages(mapping("coolblue_v1").mapping, page(*table(printed.split("\n"))))
    assert read.findings == []
    rows = [(row["name"].value, row["price_subtotal"].value) for row in read.extracted.tables["lines"]]
    assert rows == [
        ("Hoes voor laptop", Decimal("100.00")),
        ("Laptop 13'' + muis", Decimal("21.00")),
        ("Laptop 13''", None),
        ("Incl. Thuiskopieheffing", Decimal("4.24")),
        ("Muis", None),
    ]


def test_rows_by_a_pattern_are_cut_from_their_line() -> None:
    """Its named groups are the columns, each with the box of its own words."""
    mapping = Mapping.model_validate(
        {
            "format": 1,
            "name": "services",
            "title": "Services",
            "tables": {
                "lines": {
                    "columns": {"name": {}, "amount": {"type": "decimal"}},
                    "start": "Detail",
                    "end": "End",
                    "row": {"pattern": r"^(?P<name>.+) (?P<amount>\$[0-9.]+)$"},
                }
            },
        }
    )
    printed = page(*table(["Detail", "Storage $1.25", "Compute $2.50", "End"]))
    rows = extract_pages(mapping, printed).extracted.tables["lines"]
    assert [(row["name"].value, row["amount"].value) for row in rows] == [
        ("Storage", Decimal("1.25")),
        ("Compute", Decimal("2.50")),
    ]
    assert rows[0]["name"].places[0].box[2] < rows[0]["amount"].places[0].box[0]
