"""`pt_simon_invoice_v1` refuses instead of guessing, and the XML it writes adds up to the invoice."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

import pypdfium2
import pytest
from lxml import etree

from support.invoice_comparison import xml_differences
from support.invoices import LAYOUTS, make_invoice, make_layout, print_invoice, reference_invoice, wording
from waybill_documents.conversion import convert
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.loader import LoadedMapping, shipped

GOLDEN = resources.files("waybill_documents") / "mappings" / "pt_simon_invoice_v1" / "golden"


def mapping() -> LoadedMapping:
    loaded = shipped("pt_simon_invoice_v1")
    assert loaded is not None
    return loaded


def data() -> dict[str, Any]:
    """The golden invoice of three lines."""
    found: dict[str, Any] = json.loads((GOLDEN / "goods_and_service.json").read_bytes())
    return found


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """The same with the totals that its lines and its discount give."""
    made = copy.deepcopy(document)
    subtotal = sum(Decimal(line["amount"]) for line in made["lines"])
    net = subtotal - Decimal(made.get("invoice_discount", "0"))
    base = round(net * 11 / 12, 2)
    vat = round(base * 12 / 100, 2)
    totals = {"subtotal": subtotal, "other_tax_base": base, "vat_total": vat, "total": net + vat}
    return made | {name: f"{value:f}" for name, value in totals.items()}


def goods(document: dict[str, Any], folder: Path) -> list[etree._Element]:
    """The lines of the XML that is written for the data."""
    file = folder / "data.json"
    file.write_text(json.dumps(document))
    answer = convert(file, "json", mapping=mapping(), wants="xml", clock=perf_counter)
    return etree.fromstring(answer.body).findall(".//GoodService")


def said(document: dict[str, Any], folder: Path) -> list[str]:
    """What is wrong with the data."""
    with pytest.raises(DocumentRejected) as raised:
        goods(document, folder)
    return [finding.message for finding in raised.value.findings]


def test_an_invoice_with_the_signs_of_another_country_is_not_read_as_a_thousandth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sums agree, so no check would notice."""
    monkeypatch.setattr(wording, "number", lambda value, places: f"{value:,.{places}f}")
    file = tmp_path / "invoice.pdf"
    file.write_bytes(print_invoice(make_invoice(12, 5, whole=True), LAYOUTS[0]))
    with pytest.raises(DocumentRejected) as raised:
        convert(file, "pdf", mapping=mapping(), wants="xml", clock=perf_counter)
    assert raised.value.code is FaultCode.BAD_VALUE


def test_a_description_that_ends_with_a_dash_casts_no_doubt_on_the_hs_code_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "invoice.pdf"
    file.write_bytes(print_invoice(make_invoice(1, 4), LAYOUTS[0]))
    record = json.loads(convert(file, "pdf", mapping=mapping(), wants="conversion", clock=perf_counter).body)
    line, places = record["data"]["lines"][0], record["provenance"]["tables"]["lines"][0]
    assert (line["name"].partition(" - ")[0], line["hs_code"]) == ("Kawat Las RB-26 Ø2,6 mm kualitas ekspor", "831110")
    assert places["hs_code"]["confidence"] == 95


def test_money_has_no_more_than_two_decimals(tmp_path: Path) -> None:
    document = data()
    document["lines"][0] |= {"price": "12.500", "qty": "2", "amount": "25.000"}
    assert said(document, tmp_path)[:2] == [
        "line 1: price: '12.500' has 3 digits after the decimal sign, but at most 2 are allowed",
        "line 1: amount: '25.000' has 3 digits after the decimal sign, but at most 2 are allowed",
    ]


def test_a_price_is_never_rounded(tmp_path: Path) -> None:
    document = data()
    document["lines"][0] |= {"price": "1234.567", "qty": "1000", "amount": "1234567"}
    assert said(settled(document), tmp_path)[0].startswith("line 1: price: '1234.567' has 3 digits")


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("", "000000"),
        ("7317", "731700"),
        ("854442", "854442"),
        ("8544.42", "854442"),
        ("8544.42.90", "854442"),
        ("8544 4290", "854442"),
        ("8544.42.90.00", "854442"),
    ],
)
def test_a_code_is_the_first_six_digits_filled_up_from_the_right(printed: str, code: str, tmp_path: Path) -> None:
    document = data()
    document["lines"][0]["hs_code"] = printed
    assert goods(document, tmp_path)[0].findtext("Code") == code


@pytest.mark.parametrize("printed", ["12", "85444", "HS 2022 8544.42", "8544.429", "123456789012", "n/a"])
def test_what_is_no_hs_code_is_not_made_into_one(printed: str, tmp_path: Path) -> None:
    document = data()
    document["lines"][0]["hs_code"] = printed
    assert said(document, tmp_path) == [f"line 1: “{printed}” is not an HS code of 4, 6, 8 or 10 digits"]


@pytest.mark.parametrize(
    ("name", "opt"), [("Servis (Jasa)", "B"), ("Servis ( JASA )", "B"), ("Servis (\tjasa)", "B"), ("Jasa Boga", "A")]
)
def test_a_service_is_known_by_its_mark(name: str, opt: str, tmp_path: Path) -> None:
    document = data()
    document["lines"][0]["name"] = name
    assert goods(document, tmp_path)[0].findtext("Opt") == opt


def test_a_discount_is_dealt_out_to_the_last_sen(tmp_path: Path) -> None:
    document = data() | {"invoice_discount": "1002.00"}
    line = {"name": "Paku", "qty": "1", "unit": "kg", "discount": "0"}
    document["lines"] = [
        {**line, "no": no, "price": f"{1000 + no % 7}", "amount": f"{1000 + no % 7}"} for no in range(1, 511)
    ]
    lines = goods(settled(document), tmp_path)
    assert sum(Decimal(each.findtext("TotalDiscount", "")) for each in lines) == Decimal("1002.00")
    assert {each.findtext("TotalDiscount") for each in lines} <= {"1.95", "1.96", "1.97", "1.98"}


def test_a_vat_that_its_lines_do_not_have_is_refused(tmp_path: Path) -> None:
    document = settled(data())
    document |= {"vat_total": "432301.00", "total": "4362301.00"}
    document["other_tax_base"] = "3602501.00"
    assert any("the PPN of the lines adds up to" in message for message in said(document, tmp_path))


@pytest.mark.parametrize(
    ("qty", "price", "amount", "holds"),
    [
        ("3", "0.50", "1.50", True),
        ("3", "0.50", "1.00", False),
        ("3", "0.50", "1.51", False),
        ("2.5", "0.33", "0.83", True),
        ("1.255", "1001", "1256", True),
        ("1.255", "1001", "1257", False),
        ("2", "1000", "2001", False),
    ],
)
def test_a_line_may_be_off_by_what_is_rounded_and_no_more(
    qty: str, price: str, amount: str, holds: bool, tmp_path: Path
) -> None:
    document = data()
    document["lines"][0] |= {"qty": qty, "price": price, "amount": amount}
    document = settled(document)
    if holds:
        assert goods(document, tmp_path)[0].findtext("TaxBase") == f"{Decimal(amount):.2f}"
    else:
        assert [message.startswith("line 1: ") for message in said(document, tmp_path)] == [True]


def test_an_invoice_of_another_number_of_pages_than_it_says_is_refused(tmp_path: Path) -> None:
    document = pypdfium2.PdfDocument(print_invoice(make_invoice(31, 60), LAYOUTS[0]))
    pages = len(document)
    document.new_page(595, 842)
    file = tmp_path / "invoice.pdf"
    document.save(str(file))
    with pytest.raises(DocumentRejected) as raised:
        convert(file, "pdf", mapping=mapping(), wants="xml", clock=perf_counter)
    told = [finding.message for finding in raised.value.findings]
    assert f"the invoice says it has {pages} pages, the file has {pages + 1}" in told


def test_what_is_written_is_what_the_tax_rules_make_of_the_invoice(tmp_path: Path) -> None:
    file = tmp_path / "invoice.pdf"
    for seed in range(200, 215):
        invoice = make_invoice(seed)
        file.write_bytes(print_invoice(invoice, make_layout(seed)))
        xml = convert(file, "pdf", mapping=mapping(), wants="xml", clock=perf_counter).body
        assert xml_differences(invoice, xml) == [], f"seed {seed}"


def test_the_reference_is_written_as_the_tax_rules_say(tmp_path: Path) -> None:
    invoice, layout = reference_invoice()
    file = tmp_path / "invoice.pdf"
    file.write_bytes(print_invoice(invoice, layout))
    assert xml_differences(invoice, convert(file, "pdf", mapping=mapping(), wants="xml", clock=perf_counter).body) == []
