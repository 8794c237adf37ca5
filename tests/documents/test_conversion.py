"""A document is converted from a file to JSON or XML, or refused with findings that a clerk understands."""

from __future__ import annotations

import gc
import io
import json
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

import pypdfium2
import pytest
from lxml import etree

from support.invoices import LAYOUTS, Invoice, Layout, make_invoice, print_invoice, reference_invoice
from support.invoices.tamper import (
    missing_line,
    unknown_unit,
    without_buyer_npwp,
    wrong_amount,
    wrong_carry_over,
    wrong_subtotal,
)
from waybill_documents.conversion import Answer, Wants, convert
from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.mapping.loader import LoadedMapping, shipped

REFERENCE = LAYOUTS[0]
GOLDEN_CII = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()


def with_attachment(name: str, content: bytes) -> bytes:
    """A PDF of one empty page with this attachment."""
    document = pypdfium2.PdfDocument.new()
    document.new_page(595, 842)
    document.new_attachment(name).set_data(content)
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


def mapping(name: str = "pt_simon_invoice_v1") -> LoadedMapping:
    loaded = shipped(name)
    assert loaded is not None
    return loaded


def converted(
    folder: Path, pdf: bytes, wants: Wants, loaded: LoadedMapping | None = None, *, pretty: bool = False
) -> Answer:
    file = folder / "invoice.pdf"
    file.write_bytes(pdf)
    return convert(file, "pdf", mapping=loaded or mapping(), wants=wants, pretty=pretty, clock=perf_counter)


def fault(folder: Path, invoice: Invoice, layout: Layout = REFERENCE) -> DocumentRejected:
    with pytest.raises(DocumentRejected) as raised:
        converted(folder, print_invoice(invoice, layout), "conversion")
    return raised.value


def test_the_reference_invoice_comes_out_complete(tmp_path: Path) -> None:
    invoice, layout = reference_invoice()
    answer = json.loads(converted(tmp_path, print_invoice(invoice, layout), "conversion").body)

    assert len(answer["source"]["pages"]) == 17
    goods = etree.fromstring(answer["xml"].encode()).findall(".//GoodService")
    assert [each.findtext("Name") for each in goods] == [line.description for line in invoice.lines]
    assert [each.findtext("TaxBase") for each in goods] == [f"{line.amount:.2f}" for line in invoice.lines]
    checks = {check["name"]: check["passed"] for check in answer["checks"]}
    assert checks == dict.fromkeys(mapping().mapping.checks, True)
    lines = answer["provenance"]["tables"]["lines"]
    assert {line[column]["confidence"] for line in lines for column in ("no", "qty", "price", "amount")} == {100}


def test_all_answers_to_one_document_agree(tmp_path: Path) -> None:
    pdf = print_invoice(make_invoice(7, 12), REFERENCE)
    xml = converted(tmp_path, pdf, "xml")
    conversion = json.loads(converted(tmp_path, pdf, "conversion").body)
    plain = json.loads(converted(tmp_path, pdf, "json").body)

    assert conversion["xml"].encode() == xml.body
    assert conversion["data"] == plain["data"]
    assert plain["pages"][0]["words"]
    assert xml.media_type == "application/xml"
    assert list(xml.stages) == [
        "words",
        "lines",
        "rows",
        "fields",
        "values",
        "computed",
        "checks",
        "confidence",
        "xml",
    ]


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    pdf = print_invoice(make_invoice(3, 30), REFERENCE)
    assert converted(tmp_path, pdf, "xml").body == converted(tmp_path, pdf, "xml").body


def test_a_pdf_without_a_mapping_gives_its_words_and_tables(tmp_path: Path) -> None:
    file = tmp_path / "invoice.pdf"
    file.write_bytes(print_invoice(make_invoice(5, 10), REFERENCE))
    answer = json.loads(convert(file, "pdf", mapping=None, wants="json", clock=perf_counter).body)
    assert "PT SIMON" in answer["pages"][0]["text"]
    assert any("Jumlah" in cell for row in answer["tables"][0]["rows"] for cell in row)


def test_what_was_extracted_can_be_rendered_again(tmp_path: Path) -> None:
    pdf = print_invoice(make_invoice(11, 20), REFERENCE)
    conversion = converted(tmp_path, pdf, "conversion")
    file = tmp_path / "data.json"
    file.write_bytes(conversion.body)
    again = convert(file, "json", mapping=mapping(), wants="xml", clock=perf_counter)
    assert again.body.decode() == json.loads(conversion.body)["xml"]


def test_rendering_recomputes_and_checks(tmp_path: Path) -> None:
    document = json.loads(converted(tmp_path, print_invoice(make_invoice(11, 3), REFERENCE), "conversion").body)
    document["data"]["lines"][1]["amount"] = "1.00"
    file = tmp_path / "data.json"
    file.write_text(json.dumps(document))
    with pytest.raises(DocumentRejected) as raised:
        convert(file, "json", mapping=mapping(), wants="xml", clock=perf_counter)
    assert raised.value.code is FaultCode.CHECK_FAILED


class TestWrongInvoices:
    """Each with one fault, and the finding that names it."""

    def test_a_line_whose_amount_is_not_its_product(self, tmp_path: Path) -> None:
        invoice = wrong_amount(make_invoice(21, 40), 14)
        found = fault(tmp_path, invoice)
        assert found.code is FaultCode.CHECK_FAILED
        assert found.message.startswith("line 14: ")
        assert "the invoice says" in found.message
        assert found.findings[0].path == "lines[13].amount"
        assert found.findings[0].page == 1
        assert found.findings[0].box is not None

    def test_a_missing_line(self, tmp_path: Path) -> None:
        found = fault(tmp_path, missing_line(make_invoice(22, 40), 14))
        assert [finding.rule for finding in found.findings] == ["checks.running_numbers"]

    def test_a_wrong_carry_over(self, tmp_path: Path) -> None:
        invoice, layout = reference_invoice(90)
        with pytest.raises(DocumentRejected) as raised:
            converted(tmp_path, wrong_carry_over(invoice, layout), "xml")
        assert {finding.rule for finding in raised.value.findings} == {"checks.carried_over"}

    def test_a_wrong_subtotal(self, tmp_path: Path) -> None:
        found = fault(tmp_path, wrong_subtotal(make_invoice(23, 10)))
        assert "checks.subtotal" in {finding.rule for finding in found.findings}

    def test_an_unknown_unit_is_not_guessed(self, tmp_path: Path) -> None:
        found = fault(tmp_path, unknown_unit(make_invoice(24, 10), 3))
        assert found.code is FaultCode.UNKNOWN_LOOKUP
        assert found.message.startswith("line 3: ")

    def test_a_missing_npwp(self, tmp_path: Path) -> None:
        found = fault(tmp_path, without_buyer_npwp(make_invoice(25, 10)))
        assert "buyer_npwp" in found.message

    def test_what_was_found_all_the_same_is_kept(self, tmp_path: Path) -> None:
        found = fault(tmp_path, wrong_amount(make_invoice(26, 10), 2))
        assert found.partial is not None
        assert len(found.partial["data"]["lines"]) == 10
        doubtful = found.partial["provenance"]["tables"]["lines"][1]["amount"]
        assert doubtful["confidence"] <= 30
        json.dumps(found.partial)


FAX = (
    b"<ram:FaxUniversalCommunication><ram:CompleteNumber>+49 40 1</ram:CompleteNumber></ram:FaxUniversalCommunication>"
)
MAIL = b"<ram:EmailURIUniversalCommunication>"


def test_the_caller_chooses_what_may_be_lost_of_an_e_invoice(tmp_path: Path) -> None:
    pdf = with_attachment("factur-x.xml", GOLDEN_CII.replace(MAIL, FAX + MAIL, 1))
    strict = mapping("en16931_ubl")
    with pytest.raises(DocumentRejected) as refused:
        converted(tmp_path, pdf, "conversion", strict)
    assert [finding.params["value"] for finding in refused.value.findings] == ["+49 40 1"]
    answer = json.loads(converted(tmp_path, pdf, "conversion", strict.with_loss("lenient")).body)
    assert [(finding["code"], finding["params"]["value"]) for finding in answer["dropped"]] == [
        ("unsupported_construct", "+49 40 1")
    ]
    assert answer["findings"] == []
    assert "+49 40 1" not in answer["xml"]
    unchanged = json.loads(converted(tmp_path, pdf, "conversion", mapping("en16931_cii")).body)
    assert unchanged["dropped"] == []
    assert "+49 40 1" in unchanged["xml"]
    with pytest.raises(MappingFault, match="no choice"):
        mapping().with_loss("lenient")


def test_a_document_of_another_sort_is_not_recognised(tmp_path: Path, hello_pdf: bytes) -> None:
    with pytest.raises(DocumentRejected) as raised:
        converted(tmp_path, hello_pdf, "xml")
    assert raised.value.code is FaultCode.NOT_RECOGNISED
    assert "PT SIMON" in raised.value.message


def test_a_page_without_text_says_so(tmp_path: Path, blank_pdf: bytes) -> None:
    for wants, loaded in (("xml", mapping()), ("json", None)):
        file = tmp_path / "blank.pdf"
        file.write_bytes(blank_pdf)
        with pytest.raises(DocumentRejected) as raised:
            convert(file, "pdf", mapping=loaded, wants=wants, clock=perf_counter)  # type: ignore[arg-type]
        assert raised.value.code is FaultCode.NO_TEXT


@pytest.mark.parametrize(("kind", "wants"), [("json", "json"), ("json", "conversion")])
def test_data_can_only_be_rendered(tmp_path: Path, kind: Any, wants: Any) -> None:
    file = tmp_path / "data.json"
    file.write_text("{}")
    with pytest.raises(MappingFault):
        convert(file, kind, mapping=mapping(), wants=wants, clock=perf_counter)


class TestEmbedded:
    def test_is_passed_through_and_said_so(self, shared_data: Path) -> None:
        folder = shared_data / "invoices" / "facturx"
        for pdf in sorted(folder.glob("*.pdf")):
            answer = convert(pdf, "pdf", mapping=mapping("en16931_cii"), wants="conversion", clock=perf_counter)
            found = json.loads(answer.body)
            assert found["source"]["attachment"].endswith(".xml")
            assert found["provenance"]["fields"]["number"]["rule"].startswith("embedded:")
            assert etree.fromstring(found["xml"].encode()).tag.endswith("CrossIndustryInvoice")

    @pytest.mark.parametrize("wants", ["json", "xml", "conversion"])
    def test_is_held_against_its_schema_whatever_is_wanted(self, wants: Wants, tmp_path: Path) -> None:
        wrong = GOLDEN_CII.replace(b"<ram:CalculatedAmount>", b"<ram:CalculatedAmount>x", 1)
        with pytest.raises(DocumentRejected) as raised:
            converted(tmp_path, with_attachment("factur-x.xml", wrong), wants, mapping("en16931_cii"))
        assert raised.value.code is FaultCode.INVALID_XML

    def test_may_be_in_another_encoding(self, tmp_path: Path) -> None:
        xml = GOLDEN_CII.decode().replace('encoding="UTF-8"', 'encoding="UTF-16"').encode("utf-16")
        pdf = with_attachment("factur-x.xml", xml)
        found = json.loads(converted(tmp_path, pdf, "conversion", mapping("en16931_cii")).body)
        assert etree.fromstring(found["xml"].encode()).tag.endswith("CrossIndustryInvoice")

    def test_comes_with_the_words_and_tables_of_its_pages(self, shared_data: Path, tmp_path: Path) -> None:
        pdf = next((shared_data / "invoices" / "facturx").glob("*.pdf"))
        loaded = mapping("en16931_cii")
        found = json.loads(convert(pdf, "pdf", mapping=loaded, wants="json", clock=perf_counter).body)
        assert found["pages"][0]["words"]
        assert "tables" in found
        picture = json.loads(converted(tmp_path, with_attachment("factur-x.xml", GOLDEN_CII), "json", loaded).body)
        assert picture["pages"][0]["words"] == [], "its data is in the attachment, so a page may be a picture"

    def test_is_missing(self, tmp_path: Path, hello_pdf: bytes) -> None:
        with pytest.raises(DocumentRejected) as raised:
            converted(tmp_path, hello_pdf, "xml", mapping("en16931_ubl"))
        assert raised.value.code is FaultCode.NO_EMBEDDED_INVOICE


def from_xml(folder: Path, xml: bytes, wants: Wants, name: str) -> bytes:
    file = folder / "spooled"
    file.write_bytes(xml)
    return convert(file, "xml", mapping=mapping(name), wants=wants, clock=perf_counter).body


@pytest.mark.parametrize("name", ["en16931_cii", "en16931_ubl"])
def test_an_invoice_without_a_pdf_is_read_like_an_embedded_one(tmp_path: Path, name: str) -> None:
    embedded = with_attachment("factur-x.xml", GOLDEN_CII)
    from_pdf = json.loads(converted(tmp_path, embedded, "conversion", mapping(name)).body)
    alone = json.loads(from_xml(tmp_path, GOLDEN_CII, "conversion", name))
    assert alone["source"] == {"kind": "xml", "syntax": "cii", "profile": "EN16931"}
    for member in ("xml", "data", "provenance", "mapping", "findings"):
        assert alone[member] == from_pdf[member]
    assert alone["xml"].encode() == from_xml(tmp_path, GOLDEN_CII, "xml", name)


def test_ubl_without_a_pdf_becomes_cii_and_stays_the_same_invoice(tmp_path: Path) -> None:
    ubl = from_xml(tmp_path, GOLDEN_CII, "xml", "en16931_ubl")
    there = json.loads(from_xml(tmp_path, ubl, "json", "en16931_cii"))
    assert there["source"] == {"kind": "xml", "syntax": "ubl", "profile": "EN16931"}
    assert there["data"] == json.loads(from_xml(tmp_path, GOLDEN_CII, "json", "en16931_cii"))["data"]
    assert from_xml(tmp_path, ubl, "xml", "en16931_ubl") == ubl


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        (b"<note/>", FaultCode.UNSUPPORTED_CONSTRUCT),
        (b"<note", FaultCode.UNREADABLE),
        (b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>", FaultCode.UNREADABLE),
        (GOLDEN_CII.replace(b"<ram:TypeCode>380<", b"<ram:Typo>380<", 1), FaultCode.UNREADABLE),
        (b" " * 20_000_001, FaultCode.TOO_MUCH_TEXT),
    ],
)
def test_xml_that_is_no_invoice_is_refused_without_the_name_of_our_file(
    tmp_path: Path, xml: bytes, code: FaultCode
) -> None:
    with pytest.raises(DocumentRejected) as refused:
        from_xml(tmp_path, xml, "conversion", "en16931_ubl")
    assert refused.value.code is code
    assert "spooled" not in refused.value.message


def test_xml_cannot_be_read_by_a_mapping_for_pages(tmp_path: Path) -> None:
    with pytest.raises(MappingFault):
        from_xml(tmp_path, GOLDEN_CII, "xml", "pt_simon_invoice_v1")


def test_a_document_leaves_hardly_any_work_to_the_garbage_collector(tmp_path: Path) -> None:
    pdf = print_invoice(*reference_invoice(lines=60))
    converted(tmp_path, pdf, "xml")
    gc.collect()
    gc.disable()  # as in a parser of the gateway
    try:
        converted(tmp_path, pdf, "xml")
        assert gc.collect() < 500, "no cycle holds the words of a document"
    finally:
        gc.enable()
