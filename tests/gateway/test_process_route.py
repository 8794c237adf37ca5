"""The gateway's contract, row by row, with real documents over real HTTP."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from lxml import etree

from gateway.conftest import StartGateway
from support import bad_pdfs
from support.gateway import Gateway, assert_problem
from support.invoices import print_invoice, reference_invoice
from support.sheets import Rows
from support.workbooks import packed, sheet, workbook_parts
from waybill_documents import office
from waybill_gateway.content_negotiation import CONVERSION, JSON, XML

MAPPING = "pt_simon_invoice_v1"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def invoice() -> bytes:
    return print_invoice(*reference_invoice(40))


@pytest.fixture(scope="module")
def data(gateway: Gateway, invoice: bytes) -> bytes:
    """What the invoice says, as a JSON document."""
    return json.dumps(gateway.send(invoice, accept=CONVERSION, mapping=MAPPING).json()["data"]).encode()


def stages(answer: httpx.Response) -> dict[str, float]:
    """`X-Stage`, read."""
    parts = (part.split(";dur=") for part in answer.headers["x-stage"].split(", "))
    return {name: float(took) for name, took in parts}


def test_pdf_to_json(gateway: Gateway, invoice: bytes) -> None:
    answer = gateway.send(invoice, accept=JSON)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == JSON
    document = answer.json()
    assert document["source"]["kind"] == "pdf"
    assert "INVOICE" in [word["text"] for word in document["pages"][0]["words"]]
    assert len(document["pages"][0]["words"][0]["box"]) == 4
    assert document["tables"]
    assert "words" in stages(answer)


def test_pdf_to_json_with_a_mapping(gateway: Gateway, invoice: bytes) -> None:
    answer = gateway.send(invoice, accept=JSON, mapping=MAPPING)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == JSON
    document = answer.json()
    assert {"pages", "tables", "data", "provenance", "checks"} <= document.keys()
    assert len(document["data"]["lines"]) == 40
    assert document["mapping"]["name"] == MAPPING
    assert {"words", "rows", "fields", "checks"} <= stages(answer).keys()


def test_pdf_to_xml(gateway: Gateway, invoice: bytes) -> None:
    answer = gateway.send(invoice, accept=XML, mapping=f"{MAPPING}.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == XML
    assert etree.fromstring(answer.content).tag == "TaxInvoiceBulk"
    assert list(stages(answer))[-1] == "xml"


def test_the_request_chooses_what_may_be_lost(gateway: Gateway, invoice: bytes) -> None:
    golden = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()
    mail = b"<ram:EmailURIUniversalCommunication>"
    fax = b"<ram:FaxUniversalCommunication><ram:CompleteNumber>1</ram:CompleteNumber></ram:FaxUniversalCommunication>"
    pdf = bad_pdfs.with_attachment(golden.replace(mail, fax + mail, 1))
    assert gateway.send(pdf, accept=XML, mapping="en16931_ubl").json()["fault"] == "unsupported_construct"
    assert gateway.send(pdf, accept=XML, mapping="en16931_ubl", loss="strict").status_code == 422
    assert gateway.send(pdf, accept=XML, mapping="en16931_ubl", loss="lenient").status_code == 200
    refused = gateway.send(invoice, accept=XML, mapping=MAPPING, loss="lenient")
    assert (refused.status_code, refused.json()["code"]) == (400, "BAD_MAPPING")


def test_pretty_changes_only_how_it_looks(gateway: Gateway, invoice: bytes) -> None:
    compact = gateway.send(invoice, accept=XML, mapping=MAPPING, pretty="0").content
    pretty = gateway.send(invoice, accept=XML, mapping=MAPPING, pretty="1").content
    assert compact == gateway.send(invoice, accept=XML, mapping=MAPPING).content
    assert pretty.count(b"\n") > 100 > compact.count(b"\n")
    blank = etree.XMLParser(remove_blank_text=True)
    assert etree.tostring(etree.fromstring(pretty, blank)) == etree.tostring(etree.fromstring(compact, blank))


def test_json_to_xml(gateway: Gateway, invoice: bytes, data: bytes) -> None:
    answer = gateway.send(data, accept=XML, mapping=MAPPING)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == XML
    assert answer.content == gateway.send(invoice, accept=XML, mapping=MAPPING).content
    assert "words" not in stages(answer)


def test_all_in_one_pass(gateway: Gateway, invoice: bytes) -> None:
    answer = gateway.send(invoice, accept=CONVERSION, mapping=MAPPING)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONVERSION
    document = answer.json()
    assert {"xml", "data", "provenance", "checks", "stages"} <= document.keys()
    assert document["xml"].encode() == gateway.send(invoice, accept=XML, mapping=MAPPING).content
    assert stages(answer).keys() == document["stages"].keys()


@pytest.mark.parametrize("accept", ["text/html", "application/pdf", "image/*", f"{JSON};q=0"])
def test_any_other_accept_is_406(gateway: Gateway, invoice: bytes, accept: str) -> None:
    assert_problem(gateway.send(invoice, accept=accept, mapping=MAPPING), 406, "VALIDATION_ERROR")


@pytest.mark.parametrize("accept", [JSON, CONVERSION])
def test_a_json_document_can_only_become_xml(gateway: Gateway, data: bytes, accept: str) -> None:
    assert_problem(gateway.send(data, accept=accept, mapping=MAPPING), 406, "VALIDATION_ERROR")


@pytest.mark.parametrize("accept", [None, "*/*"])
def test_without_a_wish_a_pdf_becomes_json_and_json_becomes_xml(
    gateway: Gateway, invoice: bytes, data: bytes, accept: str | None
) -> None:
    assert gateway.send(invoice, accept=accept, mapping=MAPPING).headers["content-type"] == JSON
    assert gateway.send(data, accept=accept, mapping=MAPPING).headers["content-type"] == XML


@pytest.mark.parametrize("accept", [XML, CONVERSION])
def test_a_missing_mapping_is_400(gateway: Gateway, invoice: bytes, accept: str) -> None:
    problem = assert_problem(gateway.send(invoice, accept=accept), 400, "BAD_MAPPING")
    assert "mapping" in problem["detail"]


def test_an_unknown_mapping_is_400_and_lists_the_known_ones(gateway: Gateway, invoice: bytes) -> None:
    problem = assert_problem(gateway.send(invoice, accept=XML, mapping="pt_simon"), 400, "BAD_MAPPING")
    assert problem["mappings"] == [each["name"] for each in gateway.client.get("/mappings").json()["mappings"]]


def test_auto_takes_the_mapping_that_the_document_is_for(gateway: Gateway, invoice: bytes) -> None:
    answer = gateway.send(invoice, accept=CONVERSION, mapping="auto")
    assert answer.status_code == 200
    document = answer.json()
    assert answer.headers["x-mapping"] == document["mapping"]["name"] == MAPPING
    assert document["recognition"] == {
        "requested": "auto",
        "score": 18,
        "by": "phrases",
        "pages": 1,
        "candidates": len(gateway.client.get("/mappings").json()["mappings"]),
        "runner_up": None,
    }
    assert stages(answer).keys() == document["stages"].keys() > {"recognise", "words", "xml"}
    assert document["xml"].encode() == gateway.send(invoice, accept=XML, mapping=MAPPING).content


def test_auto_that_recognises_nothing_is_422_and_offers_the_nearest(gateway: Gateway) -> None:
    answer = gateway.send(bad_pdfs.good(), accept=CONVERSION, mapping="auto.json")
    problem = assert_problem(answer, 422, "PARSE_ERROR")
    assert (problem["fault"], problem["key"]) == ("not_recognised", "recognition.nothing")
    offered = problem["params"]["candidates"]
    assert {"name", "title", "score"} == offered[0].keys()
    assert MAPPING in [each["name"] for each in offered]
    assert "x-mapping" not in answer.headers
    assert "recognise" in stages(answer)


def test_auto_cannot_choose_for_data(gateway: Gateway, data: bytes) -> None:
    problem = assert_problem(gateway.send(data, accept=XML, mapping="auto"), 400, "BAD_MAPPING")
    assert problem["key"] == "recognition.pdf_only"


def test_a_bad_form_is_400(gateway: Gateway) -> None:
    assert_problem(gateway.send(None), 400, "VALIDATION_ERROR")


def test_50_mb_are_taken_and_more_are_413(gateway: Gateway) -> None:
    largest = bad_pdfs.good().ljust(50 * 1024 * 1024, b"\n")
    assert gateway.send(largest, accept=JSON).status_code in (200, 422)
    assert_problem(gateway.send(largest + b"\n", accept=JSON), 413, "TOO_LARGE")


@pytest.mark.parametrize("content", [b"PK\x03\x04 and so on", b"\x1f\x8b\x08\0", b"MZ\x90\0\x03\0\0\0", b""])
def test_what_is_no_document_is_415(gateway: Gateway, content: bytes) -> None:
    assert_problem(gateway.send(content, accept=JSON), 415, "NOT_PDF")


def test_word_and_excel_to_json(gateway: Gateway) -> None:
    if not (SHARED / "office").exists():
        pytest.skip("there is no ../shared/data beside the repository")
    for path in (SHARED / "office").iterdir():
        answer = gateway.send(path.read_bytes(), accept=JSON)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == JSON
        assert answer.json() == office.read(path).to_json()
        assert answer.json()["source"]["kind"] == path.suffix[1:]
        assert list(stages(answer)) == ["office"]


def test_text_to_json(gateway: Gateway) -> None:
    document = gateway.send("Pos;Menge;Größe\n1;2;3\n".encode("latin-1"), accept=None).json()
    assert document["source"] == {"kind": "text", "pages": 1}
    assert document["tables"][0]["rows"] == [["Pos", "Menge", "Größe"], ["1", "2", "3"]]


def test_a_mapping_reads_no_word_document(gateway: Gateway) -> None:
    letter = packed({"[Content_Types].xml": "<Types/>", "word/document.xml": "<document/>"})
    problem = assert_problem(gateway.send(letter, accept=JSON, mapping=MAPPING), 400, "BAD_MAPPING")
    assert problem["key"] == "mapping.unread_kind"
    assert_problem(gateway.send(letter, accept=XML, mapping=MAPPING), 406, "VALIDATION_ERROR")


def test_a_text_that_is_for_another_mapping_is_422(gateway: Gateway) -> None:
    problem = assert_problem(gateway.send(b"hello", accept=XML, mapping=MAPPING), 422, "PARSE_ERROR")
    assert problem["fault"] == "not_recognised"


SHEET_MAPPING = {
    "format": 1,
    "name": "sheet_v1",
    "title": "Sheet",
    "locale": {"base": "de"},
    "recognise": {"all": ["Rechnung"]},
    "fields": {"number": {"label": "Rechnung", "required": True}},
    "tables": {
        "lines": {
            "columns": {
                "name": {"header": "Artikel"},
                "amount": {"header": "Betrag", "type": "decimal", "required": True},
            },
            "row": {"begins": "amount"},
        }
    },
    "checks": {"positive": {"each": "lines", "expect": "amount > 0"}},
    "xml": {
        "root": {
            "name": "I",
            "attributes": {"n": "number"},
            "children": [{"name": "L", "each": "lines", "value": "amount"}],
        }
    },
}


def test_workbooks_and_csv_files_are_converted_by_a_mapping(start_gateway: StartGateway, tmp_path: Path) -> None:
    (tmp_path / "sheet_v1.json").write_text(json.dumps(SHEET_MAPPING))
    gateway = start_gateway(None, gateway_mappings_dir=str(tmp_path))
    rows: Rows = [["Rechnung", 4711], ["Artikel", "Betrag"], ["Rohr", 37.05], ["Mutter", "1.234,50"]]
    book = packed(workbook_parts({"Blatt 1": sheet(rows)}))
    csv = b"Rechnung;4711\nArtikel;Betrag\nRohr;37,05\nMutter;1.234,50\n"
    for document, kind, cell in ((book, "xlsx", "'Blatt 1'!B4"), (csv, "text", "B4")):
        xml = gateway.send(document, accept=XML, mapping="sheet_v1")
        assert xml.status_code == 200, xml.text
        assert xml.text.split("?>")[1].strip() == '<I n="4711"><L>37.05</L><L>1234.50</L></I>'
        whole = gateway.send(document, accept=CONVERSION, mapping="sheet_v1").json()
        assert whole["xml"] == xml.text
        assert whole["source"]["kind"] == kind
        assert whole["provenance"]["tables"]["lines"][1]["amount"]["cell"] == cell
        plain = gateway.send(document, accept=JSON, mapping="sheet_v1").json()
        assert plain["data"] == whole["data"]
        assert plain["tables"][0]["rows"]
    wrong = packed(workbook_parts({"Blatt 1": sheet([*rows[:2], ["Rohr", -1]])}))
    problem = assert_problem(gateway.send(wrong, accept=XML, mapping="sheet_v1"), 422, "PARSE_ERROR")
    assert (problem["findings"][0]["sheet"], problem["findings"][0]["cell"]) == (1, "'Blatt 1'!B3")
    again = gateway.send(json.dumps(whole).encode(), accept=XML, mapping="sheet_v1")
    assert again.text == xml.text


def test_an_e_invoice_without_a_pdf(gateway: Gateway) -> None:
    cii = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()
    ubl = gateway.send(cii, accept=XML, mapping="en16931_ubl")
    assert ubl.status_code == 200, ubl.text
    assert etree.fromstring(ubl.content).tag.endswith("}Invoice")
    record = gateway.send(ubl.content, accept=CONVERSION, mapping="en16931_cii").json()
    assert record["source"]["kind"] == "xml"
    assert etree.fromstring(record["xml"].encode()).tag.endswith("}CrossIndustryInvoice")
    assert gateway.send(cii, accept=JSON).json()["source"]["kind"] == "text"


def test_other_xml_is_422_and_says_what_it_is(gateway: Gateway) -> None:
    problem = assert_problem(gateway.send(b"<note/>", accept=XML, mapping="en16931_ubl"), 422, "PARSE_ERROR")
    assert problem["fault"] == "unsupported_construct"
    assert "<note>" in problem["detail"]
    problem = assert_problem(gateway.send(b"<note/>", accept=CONVERSION, mapping=MAPPING), 400, "BAD_MAPPING")
    assert problem["key"] == "mapping.unread_kind"


def test_totals_that_do_not_add_up_are_422_with_the_list_of_what_is_wrong(gateway: Gateway, data: bytes) -> None:
    wrong = {**json.loads(data), "total": "1.00"}
    problem = assert_problem(
        gateway.send(json.dumps(wrong).encode(), accept=XML, mapping=MAPPING, job_id="j-7"), 422, "PARSE_ERROR"
    )
    assert problem["fault"] == "check_failed"
    assert problem["job_id"] == "j-7"
    assert problem["findings"]
    assert all(finding["message"] and finding["code"] for finding in problem["findings"])
    assert problem["partial"]["data"]["total"] == "1.00"


def test_another_document_is_422(gateway: Gateway) -> None:
    answer = gateway.send(bad_pdfs.good(), accept=XML, mapping=MAPPING)
    assert assert_problem(answer, 422, "PARSE_ERROR")["fault"] == "not_recognised"
    assert "words" in stages(answer), "how far it got"


def test_the_same_document_gives_the_same_bytes_however_often_and_from_whichever_process(
    gateway: Gateway, invoice: bytes
) -> None:
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: gateway.send(invoice, accept=XML, mapping=MAPPING), range(12)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


def test_the_log_says_once_what_confines_the_parsers(gateway: Gateway) -> None:
    events = [line["event"] for line in gateway.log]
    assert len([event for event in events if event in ("parsers_confined", "parsers_not_confined")]) == 1
