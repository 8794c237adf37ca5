"""`POST /attachment`: one embedded file as plain bytes, with the refusals of `/process`."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import httpx
import pytest

from support import bad_pdfs
from support.gateway import Gateway, assert_problem
from waybill_gateway.content_negotiation import BYTES, JSON

XML = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()


def take(gateway: Gateway, document: bytes, *, accept: str = "*/*", **fields: str) -> httpx.Response:
    form = {"file": ("a.pdf", document, "application/pdf")}
    return gateway.client.post("/attachment", files=form, data=fields, headers={"Accept": accept})


def test_what_the_record_lists_can_be_taken_out(gateway: Gateway) -> None:
    document = bad_pdfs.with_attachment(XML)
    (listed,) = gateway.send(document, accept=JSON, mapping="en16931_cii").json()["source"]["attachments"]
    assert listed == {
        "number": 1,
        "name": "factur-x.xml",
        "media_type": "text/xml",
        "bytes": len(XML),
        "sha256": hashlib.sha256(XML).hexdigest(),
    }
    answer = take(gateway, document, number="1", job_id="j-1")
    assert (answer.status_code, answer.content) == (200, XML)
    assert answer.headers["content-type"] == BYTES
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-stage"].startswith("attachment;dur=")
    assert answer.headers["x-job-id"] == "j-1"


@pytest.mark.parametrize("name", ["invoice.xml", "unknown"])
def test_a_file_without_a_declared_type_is_listed_from_within_the_sandbox(gateway: Gateway, name: str) -> None:
    document = bad_pdfs.with_attachment(XML, name.encode()).replace(b"/Subtype /text#2Fxml", b"")
    answer = gateway.send(document, accept=JSON, mapping="en16931_cii")
    assert answer.status_code == 200, answer.text
    (listed,) = answer.json()["source"]["attachments"]
    assert listed["media_type"] == {"invoice.xml": "application/xml"}.get(name, BYTES)


@pytest.mark.parametrize("number", ["", "0", "-1", "1.5", "x", "1000000"])
def test_a_number_that_is_none_is_400(gateway: Gateway, number: str) -> None:
    assert_problem(take(gateway, bad_pdfs.good(), number=number), 400, "VALIDATION_ERROR")


def test_a_missing_number_is_400(gateway: Gateway) -> None:
    assert_problem(take(gateway, bad_pdfs.good()), 400, "VALIDATION_ERROR")


def test_what_is_not_there_is_the_documents_fault(gateway: Gateway) -> None:
    problem = assert_problem(take(gateway, bad_pdfs.good(), number="1"), 422, "PARSE_ERROR")
    assert problem["fault"] == "no_such_attachment"


def test_only_a_pdf_has_attachments(gateway: Gateway) -> None:
    assert_problem(take(gateway, b"{}", number="1"), 415, "NOT_PDF")
    assert_problem(take(gateway, b"text", number="1"), 415, "NOT_PDF")
    assert_problem(take(gateway, bad_pdfs.good(), accept="text/html", number="1"), 406, "VALIDATION_ERROR")


def test_an_encrypted_or_broken_pdf_is_refused(gateway: Gateway) -> None:
    for document, fault in ((bad_pdfs.encrypted(), "encrypted"), (bad_pdfs.truncated(), "unreadable")):
        assert assert_problem(take(gateway, document, number="1"), 422, "PARSE_ERROR")["fault"] == fault
