"""`POST /render`: a page as an image, through the same door and with the same refusals as `/process`."""

from __future__ import annotations

import struct

import httpx
import pytest

from support import bad_pdfs
from support.gateway import Gateway, assert_problem, told
from support.invoices import print_invoice, reference_invoice


@pytest.fixture(scope="module")
def invoice() -> bytes:
    return print_invoice(*reference_invoice(40))


def render(gateway: Gateway, document: bytes | None, *, accept: str = "image/png", **fields: str) -> httpx.Response:
    files = {"file": ("a.pdf", document, "application/pdf")} if document is not None else {"x": b""}
    return gateway.client.post("/render", files=files, data=fields, headers={"Accept": accept})


def size(answer: httpx.Response) -> tuple[int, int]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack_from(">II", answer.content, 16)
    return width, height


def test_a_page_is_drawn_at_its_scale(gateway: Gateway, invoice: bytes) -> None:
    first = render(gateway, invoice, page="1")
    width, height = size(first)
    assert (width, height) == (595, 842)
    assert first.headers["x-stage"].startswith("image;dur=")
    assert first.headers["x-content-type-options"] == "nosniff"
    second = render(gateway, invoice, page="2", scale="2", job_id="0198-render")
    assert size(second) == (2 * width, 2 * height)
    assert second.headers["x-job-id"] == "0198-render"
    line = next(line for line in gateway.log if line.get("job_id") == "0198-render")
    assert (line["event"], line["status"], line["page"], line["scale"]) == ("processed", 200, 2, 2.0)
    assert size(render(gateway, invoice, page="2", scale="1.5")) == (893, 1263)


def test_a_page_that_is_not_there_is_the_documents_fault(gateway: Gateway, invoice: bytes) -> None:
    problem = assert_problem(render(gateway, invoice, page="99"), 422, "PARSE_ERROR")
    assert problem["fault"] == "no_such_page"
    assert problem["findings"][0]["code"] == "no_such_page"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"page": ""},
        {"page": "0"},
        {"page": "-1"},
        {"page": "1.5"},
        {"page": "1234567"},
        {"page": "\u0661"},
        {"page": "1", "scale": "0"},
        {"page": "1", "scale": "4.01"},
        {"page": "1", "scale": "nan"},
        {"page": "1", "scale": "1e1"},
        {"page": "1", "job_id": "no spaces"},
    ],
)
def test_fields_that_are_wrong_are_said(obedient: Gateway, fields: dict[str, str]) -> None:
    assert_problem(render(obedient, told(), **fields), 400, "VALIDATION_ERROR")


def test_only_a_pdf_has_pages(obedient: Gateway) -> None:
    assert_problem(render(obedient, b'{"number": "1"}', page="1"), 415, "NOT_PDF")
    assert_problem(render(obedient, b"plain text", page="1"), 415, "NOT_PDF")
    assert_problem(render(obedient, None, page="1"), 400, "VALIDATION_ERROR")


def test_who_wants_no_image_is_told_before_the_document_is_sent(obedient: Gateway) -> None:
    answer = render(obedient, told(), page="1", accept="application/json")
    assert_problem(answer, 406, "VALIDATION_ERROR")
    assert_problem(obedient.client.get("/render"), 405, "VALIDATION_ERROR")


def test_what_is_too_large_is_refused(obedient: Gateway) -> None:
    assert_problem(render(obedient, b"%PDF-" + b"x" * 1_200_000, page="1"), 413, "TOO_LARGE")


@pytest.mark.parametrize(
    ("deed", "fault"), [("segfault", "parser_crashed"), ("hoard", "too_much_memory"), ("spin", "took_too_long")]
)
def test_a_page_that_kills_its_parser_harms_nobody_else(obedient: Gateway, deed: str, fault: str) -> None:
    assert assert_problem(render(obedient, told(do=deed), page="1"), 422, "PARSE_ERROR")["fault"] == fault
    assert render(obedient, told(), page="1", scale="3").status_code == 200


def test_bad_documents_are_the_documents_fault(gateway: Gateway, invoice: bytes) -> None:
    for document in (invoice[:2000], b"%PDF-1.7\nnothing"):
        assert assert_problem(render(gateway, document, page="1"), 422, "PARSE_ERROR")["fault"] == "unreadable"
    assert size(render(gateway, bad_pdfs.good(), page="1")) == (595, 842)
