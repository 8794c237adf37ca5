"""The Coretax schema accepts a correct document, and explains what is wrong with an incorrect one."""

from __future__ import annotations

from importlib import resources

import pytest
from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.xml_output import XmlSchema, load_schema

_TIN = "0715420659018000"
_INVOICE = {
    "TaxInvoiceDate": "2025-08-07",
    "TaxInvoiceOpt": "Normal",
    "TrxCode": "04",
    "AddInfo": "",
    "CustomDoc": "",
    "CustomDocMonthYear": "",
    "RefDesc": "2508070002",
    "FacilityStamp": "",
    "SellerIDTKU": _TIN + "000000",
    "BuyerTin": "0012345678901234",
    "BuyerDocument": "TIN",
    "BuyerCountry": "IDN",
    "BuyerDocumentNumber": "-",
    "BuyerName": "PT Pembeli",
    "BuyerAdress": "Jl. Merdeka 1, Jakarta",
    "BuyerEmail": "",
    "BuyerIDTKU": "0012345678901234000000",
}
_LINE = {
    "Opt": "A",
    "Code": "854449",
    "Name": "Kabel NYM 3 x 2,5",
    "Unit": "UM.0021",
    "Price": "12500.00",
    "Qty": "3",
    "TotalDiscount": "0.00",
    "TaxBase": "37500.00",
    "OtherTaxBase": "34375.00",
    "VATRate": "12",
    "VAT": "4125.00",
    "STLGRate": "0",
    "STLG": "0.00",
}


@pytest.fixture(scope="module")
def schema() -> XmlSchema:
    folder = resources.files("waybill_documents") / "mappings" / "pt_simon_invoice_v1"
    return load_schema((folder / "coretax.xsd").read_bytes(), name="coretax.xsd")


def document(lines: int = 1) -> etree._Element:
    root = etree.Element("TaxInvoiceBulk")
    etree.SubElement(root, "TIN").text = _TIN
    invoice = etree.SubElement(etree.SubElement(root, "ListOfTaxInvoice"), "TaxInvoice")
    for name, text in _INVOICE.items():
        etree.SubElement(invoice, name).text = text
    goods = etree.SubElement(invoice, "ListOfGoodService")
    for _ in range(lines):
        line = etree.SubElement(goods, "GoodService")
        for name, text in _LINE.items():
            etree.SubElement(line, name).text = text
    return root


def changed(name: str, text: str) -> etree._Element:
    root = document()
    (element,) = root.iter(name)
    element.text = text
    return root


def test_a_correct_document_fits(schema: XmlSchema) -> None:
    assert schema.fits(document(lines=3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BuyerEmail", "pajak@pembeli.co.id"),
        ("Opt", "B"),
        ("Code", "000000"),
        ("Price", "12500"),
        ("Price", "12500.5"),
        ("Qty", "2.5"),
        ("Qty", "0.0001"),
        ("TrxCode", "01"),
        ("Name", "Jasa (Jasa) – “überall”"),
        ("AddInfo", "TD.00501"),
        ("VATRate", "11"),
        ("BuyerCountry", "SGP"),
    ],
)
def test_what_may_vary_may(schema: XmlSchema, name: str, text: str) -> None:
    assert schema.fits(changed(name, text))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("TIN", "715420659018000", "16 digits"),
        ("TIN", "07.154.206.5-901.8000", "16 digits"),
        ("BuyerTin", "", "16 digits"),
        ("BuyerTin", "００１２３４５６７８９０１２３４", "16 digits"),
        ("SellerIDTKU", _TIN, "22 digits"),
        ("BuyerIDTKU", "x" * 22, "22 digits"),
        ("TaxInvoiceDate", "07/08/2025", "2025-08-07"),
        ("TaxInvoiceDate", "2025-02-30", "2025-08-07"),
        ("TaxInvoiceDate", "2025-08-07Z", "2025-08-07"),
        ("TaxInvoiceOpt", "Biasa", "Normal"),
        ("TrxCode", "4", "01 to 10"),
        ("RefDesc", "", "not empty"),
        ("BuyerDocument", "Passport", "TIN"),
        ("BuyerCountry", "ID", "IDN"),
        ("BuyerName", "  ", "not empty"),
        ("BuyerAdress", "", "not empty"),
        ("BuyerEmail", "nobody", "e-mail"),
        ("Opt", "C", "A for goods or B for services"),
        ("Opt", "a", "A for goods or B for services"),
        ("Code", "8544", "six digits"),
        ("Code", "8544.49", "six digits"),
        ("Name", "", "not empty"),
        ("Unit", "pcs", "UM.0021"),
        ("Unit", "UM.021", "UM.0021"),
        ("Unit", "UMx0021", "UM.0021"),
        ("Price", "12.500,00", "two decimals"),
        ("Price", "1.005", "two decimals"),
        ("Price", "", "two decimals"),
        ("Price", "1E3", "two decimals"),
        ("TotalDiscount", "-1.00", "not negative"),
        ("VAT", "NaN", "two decimals"),
        ("Qty", "0", "above zero"),
        ("Qty", "-3", "above zero"),
        ("VATRate", "112", "0 to 100"),
        ("STLGRate", "12%", "0 to 100"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_element(
    schema: XmlSchema, name: str, text: str, expected: str
) -> None:
    with pytest.raises(DocumentRejected) as fault:
        schema.explain(changed(name, text))
    assert fault.value.code is FaultCode.INVALID_XML
    (finding,) = fault.value.findings
    assert finding.message.startswith(f"<{name}> is ")
    assert expected in finding.message


@pytest.mark.parametrize("name", ["TIN", *_INVOICE, *_LINE])
def test_every_element_must_be_there(schema: XmlSchema, name: str) -> None:
    root = document()
    (element,) = root.iter(name)
    parent = element.getparent()
    assert parent is not None
    parent.remove(element)
    assert not schema.fits(root)


@pytest.mark.parametrize("name", [*list(_INVOICE)[1:], *list(_LINE)[1:]])
def test_the_order_is_fixed(schema: XmlSchema, name: str) -> None:
    root = document()
    (element,) = root.iter(name)
    before = element.getprevious()
    assert before is not None
    before.addprevious(element)
    assert not schema.fits(root)


def test_nothing_else_may_be_there(schema: XmlSchema) -> None:
    root = document()
    etree.SubElement(root, "Extra")
    assert not schema.fits(root)
    root = document()
    root.set("version", "1")
    assert not schema.fits(root)
    root = document()
    (element,) = root.iter("RefDesc")
    element.addnext(etree.Element("RefDesc"))
    assert not schema.fits(root)


def test_an_invoice_without_lines_does_not_fit(schema: XmlSchema) -> None:
    with pytest.raises(DocumentRejected) as fault:
        schema.explain(document(lines=0))
    assert fault.value.findings[0].message == "<ListOfGoodService> lacks <GoodService>"


def test_a_document_in_a_namespace_does_not_fit(schema: XmlSchema) -> None:
    assert not schema.fits(etree.fromstring(b'<TaxInvoiceBulk xmlns="urn:x"/>'))
