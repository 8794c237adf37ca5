"""An invoice embedded in a PDF is found, read with its provenance, validated and checked; hostile ones are refused."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal
from importlib import resources
from pathlib import Path

import pypdfium2
import pytest

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid import (
    EmbeddedInvoice,
    Profile,
    Syntax,
    check_embedded,
    convert,
    embedded_in,
    extract,
    parse_invoice,
    required,
)
from waybill_documents.hybrid.profiles import profile_of, schema_of
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened

GOLDEN = resources.files("waybill_documents") / "mappings" / "en16931_ubl" / "golden"
INVOICE = (GOLDEN / "invoice.cii.xml").read_bytes()


def to_cii(embedded: EmbeddedInvoice) -> bytes:
    return convert(embedded, Syntax.CII).xml


def pdf(folder: Path, *attachments: tuple[str, bytes]) -> Path:
    """A PDF of one empty page with these attachments."""
    document = pypdfium2.PdfDocument.new()
    document.new_page(595, 842)
    for name, content in attachments:
        document.new_attachment(name).set_data(content)
    file = folder / "invoice.pdf"
    document.save(str(file))
    document.close()
    return file


def read_embedded(source: Path, limits: PdfLimits) -> EmbeddedInvoice | None:
    with opened(source, limits) as document:
        return embedded_in(document, limits)


def parsed(xml: bytes = INVOICE) -> EmbeddedInvoice:
    return parse_invoice("factur-x.xml", xml)


def changed(old: str, new: str) -> EmbeddedInvoice:
    """The golden invoice with one thing replaced."""
    text = INVOICE.decode()
    assert text.count(old) >= 1
    return parsed(text.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    "name",
    [
        "factur-x.xml",
        "ZUGFeRD-invoice.xml",
        "zugferd-invoice.xml",
        "xrechnung.xml",
        "Factur-X.XML",
        "my invoice.xml",
        "data",
    ],
)
def test_the_invoice_is_found_by_its_name_or_by_its_content(tmp_path: Path, name: str) -> None:
    other = ("notes.xml", b"<notes/>")
    found = read_embedded(pdf(tmp_path, other, (name, INVOICE)), PdfLimits())
    assert found is not None
    assert (found.name, found.xml, found.profile) == (name, INVOICE, Profile.EN16931)


def test_the_standards_name_goes_before_another_invoice(tmp_path: Path) -> None:
    draft = INVOICE.replace(b"HL-2025-0117", b"DRAFT")
    found = read_embedded(pdf(tmp_path, ("draft.xml", draft), ("factur-x.xml", INVOICE)), PdfLimits())
    assert found is not None
    assert found.name == "factur-x.xml"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_newest_edition_goes_first(tmp_path: Path, order: tuple[int, int]) -> None:
    old = b"<CrossIndustryDocument xmlns='urn:ferd:CrossIndustryDocument:invoice:1p0'/>"
    both = (("ZUGFeRD-invoice.xml", old), ("factur-x.xml", INVOICE))
    found = read_embedded(pdf(tmp_path, *(both[index] for index in order)), PdfLimits())
    assert found is not None
    assert found.name == "factur-x.xml"


def test_the_invoice_is_found_behind_a_hundred_others(tmp_path: Path) -> None:
    others = [(f"photo-{number}.jpg", b"x") for number in range(150)]
    found = read_embedded(pdf(tmp_path, *others, ("factur-x.xml", INVOICE)), PdfLimits())
    assert found is not None
    unknown = [(f"data-{number}.xml", b"<notes/>") for number in range(101)]
    with pytest.raises(DocumentRejected, match="has 102 attachments") as fault:
        read_embedded(pdf(tmp_path, *unknown, ("invoice-7.xml", INVOICE)), PdfLimits())
    assert fault.value.code is FaultCode.TOO_MUCH_TEXT


def test_a_pdf_without_an_invoice_says_so_kindly(tmp_path: Path) -> None:
    for attachments in ([], [("notes.xml", b"<notes/>"), ("broken.xml", b"<"), ("terms.txt", INVOICE)]):
        found = read_embedded(pdf(tmp_path, *attachments), PdfLimits())
        assert found is None
        with pytest.raises(DocumentRejected, match="has no embedded invoice") as fault:
            required(found)
        assert fault.value.code is FaultCode.NO_EMBEDDED_INVOICE


def test_an_attachment_has_a_largest_size(tmp_path: Path) -> None:
    with pytest.raises(DocumentRejected, match="at most 1,000 are read") as fault:
        read_embedded(pdf(tmp_path, ("factur-x.xml", INVOICE)), PdfLimits(attachment_bytes=1000))
    assert fault.value.code is FaultCode.TOO_MUCH_TEXT
    assert read_embedded(pdf(tmp_path, ("drawing.xml", INVOICE)), PdfLimits(attachment_bytes=1000)) is None


_LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (level, b"&l%d;" % (level - 1) * 10) for level in range(1, 10))


@pytest.mark.parametrize(
    "prolog",
    [
        b"<!DOCTYPE r>",
        b'<!DOCTYPE r [<!ENTITY l0 "ha">' + _LAUGHS + b"]>",
        b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">',
        b'<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>',
        b'<!DOCTYPE r [<!ATTLIST r a CDATA "default">]>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_in_any_encoding(prolog: bytes, encoding: str) -> None:
    body = INVOICE.partition(b"?>\n")[2].replace(b"Hafenlicht GmbH", b"&l9;" if b"l9" in prolog else b"x", 1)
    hostile = (prolog + body).decode().encode(encoding)
    with pytest.raises(DocumentRejected, match="declares a document type") as fault:
        parsed(hostile)
    assert fault.value.code is FaultCode.UNREADABLE


@pytest.mark.parametrize(
    ("xml", "code", "why"),
    [
        (b"", FaultCode.UNREADABLE, "not XML"),
        (b"no xml", FaultCode.UNREADABLE, "not XML"),
        (INVOICE[:5000], FaultCode.UNREADABLE, "not XML"),
        (b"<a>" * 10_000, FaultCode.UNREADABLE, "not XML"),
        (b"<Invoice/>", FaultCode.UNSUPPORTED_CONSTRUCT, "<Invoice>"),
        (b"<CrossIndustryInvoice/>", FaultCode.UNSUPPORTED_CONSTRUCT, "neither a Cross Industry Invoice nor UBL"),
    ],
)
def test_what_is_no_invoice_of_the_standard_is_named(xml: bytes, code: FaultCode, why: str) -> None:
    with pytest.raises(DocumentRejected, match=why) as fault:
        parsed(xml)
    assert fault.value.code is code


@pytest.mark.parametrize(
    ("guideline", "profile"),
    [
        ("urn:factur-x.eu:1p0:minimum", Profile.MINIMUM),
        ("urn:factur-x.eu:1p0:basicwl", Profile.BASIC_WL),
        ("urn:cen.eu:en16931:2017#compliant#urn:factur-x.eu:1p0:basic", Profile.BASIC),
        ("urn:cen.eu:en16931:2017", Profile.EN16931),
        ("urn:cen.eu:en16931:2017#conformant#urn:factur-x.eu:1p0:extended", Profile.EXTENDED),
        ("urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0", Profile.EN16931),
        ("urn:cen.eu:en16931:2017#compliant#urn:xoev-de:kosit:standard:xrechnung_2.1", Profile.EN16931),
        ("urn:cen.eu:en16931:2017#compliant#urn:zugferd.de:2p0:basic", Profile.BASIC),
        ("something else", Profile.EN16931),
    ],
)
def test_the_profile_follows_from_the_guideline(guideline: str, profile: Profile) -> None:
    assert profile_of(guideline) is profile


@pytest.mark.parametrize("profile", list(Profile))
def test_every_profile_has_its_schema(profile: Profile) -> None:
    assert not schema_of(profile).fits(parsed().root) or profile in {Profile.EN16931, Profile.EXTENDED}


def test_the_schemas_are_used_without_the_package_that_holds_them() -> None:
    code = (
        "import sys; from waybill_documents.hybrid.profiles import Profile, schema_of; schema_of(Profile.EN16931);"
        " sys.exit('drafthorse' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_valid_invoice_passes_through_byte_for_byte() -> None:
    assert to_cii(parsed()) == INVOICE
    golden = resources.files("waybill_documents") / "mappings" / "en16931_cii" / "golden" / "credit_note.cii.xml"
    assert to_cii(parsed(golden.read_bytes())) == golden.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "<ram:LineTotalAmount>185.00<",
            "<ram:LineTotalAmount>185,00<",
            "<LineTotalAmount> is '185,00', but should be decimal",
        ),
        ("<ram:ID>HL-2025-0117</ram:ID>", "", "<TypeCode> is not expected here, but <ID>"),
        ("<ram:TypeCode>380</ram:TypeCode>", "<ram:TypeCode>380</ram:TypeCode><ram:X/>", "<X> is not expected here"),
    ],
)
def test_an_invoice_that_does_not_fit_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    with pytest.raises(DocumentRejected) as fault:
        to_cii(changed(old, new))
    assert fault.value.code is FaultCode.INVALID_XML
    finding = fault.value.findings[0]
    assert finding.message.startswith(message)
    assert finding.params["xml_line"] > 1


def test_values_come_with_the_place_in_the_attachment() -> None:
    extracted = extract(parsed())
    data = extracted.data()
    assert data["number"] == "HL-2025-0117"
    assert data["issue_date"] == date(2025, 8, 7)
    assert data["due_date"] == date(2025, 9, 6)
    assert (data["seller_name"], data["seller_vat_id"], data["seller_tax_number"]) == (
        "Hafenlicht GmbH",
        "DE999999999",
        "22/815/0815",
    )
    assert (data["buyer_name"], data["buyer_vat_id"]) == ("Nordwerft AG", "DE888888888")
    assert (data["net"], data["tax"], data["gross"], data["payable"]) == (
        Decimal("288.00"),
        Decimal("34.20"),
        Decimal("322.20"),
        Decimal("300.00"),
    )
    assert [(line["id"], line["quantity"], line["unit"], line["net"], line["tax_rate"]) for line in data["lines"]] == [
        ("1", Decimal(20), "H87", Decimal("185.00"), Decimal(19)),
        ("2", Decimal(2), "HUR", Decimal("100.00"), Decimal(0)),
    ]
    unit = extracted.tables["lines"][1]["unit"]
    assert (unit.raw, unit.confidence, unit.places) == ("HUR", 100, ())
    assert unit.rule == (
        "embedded:/rsm:CrossIndustryInvoice/rsm:SupplyChainTradeTransaction/ram:IncludedSupplyChainTradeLineItem[2]"
        "/ram:SpecifiedLineTradeDelivery/ram:BilledQuantity/@unitCode"
    )


def test_a_long_invoice_is_read_whole() -> None:
    start, end = INVOICE.index(b"<ram:IncludedSupplyChainTradeLineItem>"), INVOICE.index(b"<ram:ApplicableHeaderTradeA")
    many = parsed(INVOICE[:start] + INVOICE[start:end] * 1_000 + INVOICE[end:])
    extracted = extract(many)  # not quadratic: no value counts the previous lines
    assert len(extracted.tables["lines"]) == 2_000
    assert "LineItem[2000]/" in extracted.tables["lines"][-1]["name"].rule


def test_the_tax_is_the_one_in_the_invoices_own_currency() -> None:
    swapped = changed('"EUR">34.20<', '"SEK">376.20<').xml.decode().replace('"SEK">376.20<', '"EUR">34.20<')
    extracted = extract(parsed(swapped.encode()))
    assert extracted.fields["tax"].value == Decimal("34.20")


def test_prefixes_do_not_matter() -> None:
    text = INVOICE.decode().replace("ram:", "x:").replace("xmlns:ram", "xmlns:x")
    extracted = extract(parsed(text.encode()))
    assert extracted.fields["number"].rule == "embedded:/rsm:CrossIndustryInvoice/rsm:ExchangedDocument/ram:ID"


def test_a_value_that_cannot_be_read_is_a_finding() -> None:
    with pytest.raises(DocumentRejected) as fault:
        extract(changed(">20250807<", ">7 August<"))
    assert fault.value.code is FaultCode.BAD_VALUE
    assert fault.value.findings[0].path == "issue_date"
    assert fault.value.findings[0].message == (
        "/rsm:CrossIndustryInvoice/rsm:ExchangedDocument/ram:IssueDateTime/udt:DateTimeString:"
        " '7 August' is not a date such as 20250807"
    )


@pytest.mark.parametrize("amount", ["abc", "1e999999", "sNaN", "NaN", "Infinity", "1_0", "9" * 40])
@pytest.mark.parametrize("element", ["CalculatedAmount>", "ActualAmount>", "DuePayableAmount>"])
def test_what_is_no_amount_is_a_finding_and_breaks_nothing(element: str, amount: str) -> None:
    start = INVOICE.rindex(f"<ram:{element}".encode()) + len(element) + 5
    xml = INVOICE[:start] + amount.encode() + INVOICE[INVOICE.index(b"<", start) :]
    embedded = parsed(xml)
    with pytest.raises(DocumentRejected) as fault:
        check_embedded(embedded, extract(embedded))
    assert fault.value.code is FaultCode.BAD_VALUE
    assert "is not a number" in fault.value.findings[0].message


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1", "windows-1252"])
def test_an_invoice_in_another_encoding_is_passed_on_in_utf8(encoding: str) -> None:
    text = INVOICE.decode().replace('encoding="UTF-8"', f'encoding="{encoding}"').replace("€", "EUR")
    xml = "".join(sign if ord(sign) < 256 else "?" for sign in text).encode(encoding)
    written = to_cii(parsed(xml)).decode("utf-8")
    assert "UTF-8" in written.partition("?>")[0]
    assert parsed(written.encode()).profile is Profile.EN16931


def test_the_sums_of_the_standard_hold_for_the_golden_invoice() -> None:
    embedded = parsed()
    results = check_embedded(embedded, extract(embedded))
    assert {result.name: result.passed for result in results} == dict.fromkeys(
        [f"br_co_{number}" for number in range(10, 17)], True
    )


@pytest.mark.parametrize(
    ("old", "new", "broken", "message"),
    [
        (
            "LineTotalAmount>285.00",
            "LineTotalAmount>286.00",
            "br_co_10",
            "the lines add up to 285.00, the invoice says 286.00",
        ),
        (
            "AllowanceTotalAmount>5.00",
            "AllowanceTotalAmount>6.00",
            "br_co_11",
            "the allowances add up to 5.00, the invoice says 6.00",
        ),
        (
            "ChargeTotalAmount>8.00",
            "ChargeTotalAmount>9.00",
            "br_co_12",
            "the charges add up to 8.00, the invoice says 9.00",
        ),
        (
            "TaxBasisTotalAmount>288.00",
            "TaxBasisTotalAmount>289.00",
            "br_co_13",
            "the lines less allowances plus charges are 288.00, the invoice says 289.00",
        ),
        ('"EUR">34.20', '"EUR">34.21', "br_co_14", "the taxes by rate add up to 34.20, the invoice says 34.21"),
        (
            "GrandTotalAmount>322.20",
            "GrandTotalAmount>322.21",
            "br_co_15",
            "the net amount plus tax is 322.20, the invoice says 322.21",
        ),
        (
            "DuePayableAmount>300.00",
            "DuePayableAmount>300.01",
            "br_co_16",
            "the gross amount less what is paid is 300.00, the invoice says 300.01",
        ),
    ],
)
def test_a_total_that_contradicts_is_a_finding(old: str, new: str, broken: str, message: str) -> None:
    embedded = changed(old, new)
    failed = {result.name: result for result in check_embedded(embedded, extract(embedded)) if result.passed is False}
    assert broken in failed
    assert failed[broken].findings[0].message == message
    assert failed[broken].findings[0].code is FaultCode.CHECK_FAILED
