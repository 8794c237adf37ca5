"""The gateway's contract, row by row, with real documents over real HTTP."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from lxml import etree

from support import bad_pdfs
from support.gateway import Gateway, assert_problem
from support.invoices import print_invoice, reference_invoice
from waybill_gateway.content_negotiation import CONVERSION, JSON, XML

MAPPING = "pt_simon_invoice_v1"


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


def test_neither_pdf_nor_json_is_415(gateway: Gateway) -> None:
    assert_problem(gateway.send(b"PK\x03\x04 and so on", accept=JSON), 415, "NOT_PDF")


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
