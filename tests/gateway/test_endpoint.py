"""Every bad document gets its documented status and code, in time, and the gateway is as it was afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docx.oxml.ns import nsdecls

from gateway.conftest import StartGateway
from support import bad_pdfs
from support.gateway import Gateway, assert_problem
from support.patience import PATIENCE
from support.workbooks import packed, sheet, sheet_xml, strict, workbook_parts
from waybill_gateway.content_negotiation import XML

MB = 1024 * 1024
MAPPING = "pt_simon_invoice_v1"
LIMIT = 20
"""Seconds one document may take here."""
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway for all of them: whatever a document does to it, the next one will notice."""
    folder = tmp_path_factory.mktemp("guarded")
    gateway = Gateway(folder, gateway_parse_timeout=str(LIMIT), gateway_memory_mb="512", max_upload_mb="60")
    gateway.send(bad_pdfs.good())
    before = gateway.memory()
    yield gateway
    assert gateway.send(bad_pdfs.good()).status_code == 200
    assert gateway.spooled() == []
    assert gateway.memory() - before < 20 * MB
    gateway.close()
    assert "conversion_broken" not in gateway.log_text


def check(gateway: Gateway, document: bytes, status: int, fault: str | None) -> None:
    began = time.monotonic()
    answer = gateway.send(document)
    assert time.monotonic() - began < LIMIT + 10
    if status == 200:
        assert answer.status_code == 200, answer.text[:500]
        return
    problem = assert_problem(answer, status, {415: "NOT_PDF", 422: "PARSE_ERROR"}[status])
    assert problem.get("fault") == fault


@pytest.mark.parametrize(
    ("make", "status", "fault"),
    [
        (bad_pdfs.good, 200, None),
        (bad_pdfs.truncated, 422, "unreadable"),
        (bad_pdfs.without_its_end, 422, "unreadable"),
        (bad_pdfs.encrypted, 422, "encrypted"),
        (bad_pdfs.no_pages, 422, "unreadable"),  # after an encrypted one: pdfium repeats itself
        (bad_pdfs.encrypted_for_show, 200, None),
        (bad_pdfs.image_only, 422, "no_text"),
        (bad_pdfs.empty_page, 422, "no_text"),
        (bad_pdfs.many_pages, 422, "too_many_pages"),
        (bad_pdfs.count_that_lies, 200, None),
        (bad_pdfs.deep_page_tree, 422, "unreadable"),
        (bad_pdfs.deep_array, 200, None),
        (bad_pdfs.deep_dictionary, 200, None),
        (bad_pdfs.deep_graphics, 200, None),
        (bad_pdfs.deep_marked_content, 422, "too_much_memory"),
        (bad_pdfs.page_tree_of_itself, 422, "unreadable"),
        (bad_pdfs.contents_of_itself, 422, "no_text"),
        (bad_pdfs.length_of_itself, 200, None),
        (bad_pdfs.form_of_itself, 422, "too_much_memory"),
        (bad_pdfs.table_of_itself, 200, None),
        (bad_pdfs.forms_of_forms, 422, "too_much_memory"),
        (bad_pdfs.bomb, 422, "too_much_memory"),
        (bad_pdfs.much_text, 422, "too_much_text"),
        (bad_pdfs.half_characters, 200, None),
        (bad_pdfs.javascript, 200, None),
        (bad_pdfs.launches_a_program, 200, None),
        (bad_pdfs.reads_a_file, 422, "no_text"),
        (bad_pdfs.gigantic_image, 200, None),
        (bad_pdfs.gigantic_table, 200, None),
        (bad_pdfs.gigantic_object_stream, 200, None),
        (bad_pdfs.gigantic_predictor, 422, "no_text"),
        (bad_pdfs.random_bytes, 415, None),
        (bad_pdfs.random_after_the_head, 422, "unreadable"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_bad_pdf_gets_its_verdict(
    guarded: Gateway, make: Callable[[], bytes], status: int, fault: str | None
) -> None:
    check(guarded, make(), status, fault)


@pytest.mark.parametrize("size", [b"1000000000", b"9" * 40, b"1e9", b"0", b"null", b"(x)"])
def test_a_page_of_a_mad_size_is_read_for_its_text(guarded: Gateway, size: bytes) -> None:
    check(guarded, bad_pdfs.page_of_size(size), 200, None)


@pytest.mark.parametrize("size", [b"-500", b"0.0001"])
def test_a_page_that_shows_nothing_has_no_text(guarded: Gateway, size: bytes) -> None:
    check(guarded, bad_pdfs.page_of_size(size), 422, "no_text")


def test_nothing_of_this_machine_is_in_the_answer(guarded: Gateway) -> None:
    assert "root:" not in guarded.send(bad_pdfs.reads_a_file()).text
    assert "/" not in guarded.send(bad_pdfs.truncated()).json()["detail"]


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: b"[" * 1_000_000, "unreadable"),
        (lambda: b'{"a":' * 500_000, "unreadable"),
        (lambda: b"[1e999999999]", "unreadable"),
        (lambda: b'{"number": ' + b"9" * 1_000_000 + b"}", "unreadable"),
        (lambda: b"[NaN]", "unreadable"),
        (lambda: b'{"a": 1', "unreadable"),
        (lambda: b"[]", "unreadable"),
        (lambda: b"{}", "field_missing"),
        (lambda: b'{"lines": [' + b"{}," * 300_000 + b"{}]}", "field_missing"),
        (lambda: b'{"a": "\\ud800"}', "bad_value"),
        (lambda: b'{"x": "' + b"a" * 40_000_000 + b'"}', "bad_value"),
    ],
    ids=["arrays", "objects", "exponent", "digits", "nan", "cut", "list", "empty", "rows", "surrogate", "long"],
)
def test_a_bad_json_document_gets_its_verdict(guarded: Gateway, make: Callable[[], bytes], fault: str) -> None:
    problem = assert_problem(guarded.send(make(), accept=XML, mapping=MAPPING), 422, "PARSE_ERROR")
    assert problem["fault"] == fault


_CII = b"rsm:CrossIndustryInvoice xmlns:rsm='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100'"
_LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (level, b"&l%d;" % (level - 1) * 20) for level in range(1, 12))


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: b'<!DOCTYPE x [<!ENTITY l0 "ha">' + _LAUGHS + b"]><" + _CII + b">&l11;</x>", "unreadable"),
        (lambda: b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>', "unreadable"),
        (lambda: b"<a>" * 200_000, "unreadable"),
        (lambda: b"<a>" + b"<b/>" * 1_000_000 + b"</a>", "unsupported_construct"),
        (lambda: b"<a>" + b" " * 300_000_000 + b"</a>", "too_much_memory"),
        (lambda: b"", "unreadable"),
    ],
    ids=["laughs", "entity", "deep", "wide", "large", "empty"],
)
def test_a_bad_embedded_invoice_gets_its_verdict(guarded: Gateway, make: Callable[[], bytes], fault: str) -> None:
    answer = guarded.send(bad_pdfs.with_attachment(make()), accept=XML, mapping="en16931_cii")
    assert assert_problem(answer, 422, "PARSE_ERROR")["fault"] == fault
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    ("name", "status", "fault"),
    [
        ("protectedFile.xlsx", 422, "encrypted"),
        ("quine.gz", 415, None),
        ("testPDF_protected.pdf", 200, None),  # readable without a password, only printing is forbidden
        ("testWORD_protected_passtika.docx", 422, "encrypted"),
        ("testWORD_truncated.docx", 422, "unreadable"),
        ("testZIP_corrupted_oom.zip", 415, None),
    ],
)
def test_a_hostile_file_of_others_gets_its_verdict(guarded: Gateway, name: str, status: int, fault: str | None) -> None:
    if not SHARED.exists():
        pytest.skip("there is no ../shared/data beside the repository")
    check(guarded, (SHARED / "hostile" / name).read_bytes(), status, fault)


def test_every_hostile_file_of_others_is_in_the_list(guarded: Gateway) -> None:
    if not SHARED.exists():
        pytest.skip("there is no ../shared/data beside the repository")
    for path in (SHARED / "hostile").iterdir():
        assert guarded.send(path.read_bytes(), accept=XML, mapping=MAPPING).status_code in (406, 415, 422)


_ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def word(document: str) -> bytes:
    """A Word document with this as its main part."""
    document = document.replace("<w:document", f"<w:document {nsdecls('w')}")
    return packed({**workbook_parts({}), "word/document.xml": document})


def workbook(sheet: str) -> bytes:
    return packed(workbook_parts({"Sheet": sheet}))


@pytest.mark.parametrize(
    ("make", "status", "fault"),
    [
        (lambda: workbook(sheet([["number", "amount"], [1, 2.5]])), 200, None),
        (lambda: strict(workbook(sheet([["number", "amount"], [1, 2.5]]))), 200, None),
        (lambda: b"number;amount\n1;2,50\n", 200, None),
        (lambda: b"<note>Not an invoice</note>", 200, None),
        (lambda: "Grüße".encode("utf-16"), 200, None),
        (lambda: word("<w:document><w:body>" + " " * 100_000_000 + "</w:body></w:document>"), 422, "too_much_text"),
        (lambda: workbook(sheet_xml(" " * 100_000_000)), 422, "too_much_text"),
        (lambda: workbook(_ENTITIES + "]>" + sheet_xml("&i;")), 422, "unreadable"),
        (lambda: workbook('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'), 422, "unreadable"),
        (lambda: workbook("<worksheet>" + "<sheetData>" * 100_000), 422, "unreadable"),
        (lambda: word("<w:document>"), 422, "unreadable"),
        (lambda: packed(workbook_parts({}))[:-30], 422, "unreadable"),
        (lambda: packed({f"{number}/word/document.xml": "" for number in range(20)}), 415, None),
        (lambda: b"a" * 20_000_001, 422, "too_much_text"),
        (lambda: b"\f" * 20_000 + b"x", 422, "too_many_pages"),
        (lambda: b"\x89PNG\r\n\x1a\n" + b"%PDF-1.7", 415, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_office_or_text_file_gets_its_verdict(
    guarded: Gateway, make: Callable[[], bytes], status: int, fault: str | None
) -> None:
    document = make()
    check(guarded, document, status, fault)
    assert "root:" not in guarded.send(document).text


def test_a_file_in_an_old_format_says_what_to_do(guarded: Gateway) -> None:
    old = packed({"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": "<p/>"})
    problem = assert_problem(guarded.send(old), 415, "NOT_PDF")
    assert problem["key"] == "office.presentation"
    assert problem["detail"].startswith("This is a presentation.")


def _mapping(pattern: str) -> str:
    field = {"pattern": pattern, "required": False}
    return json.dumps(
        {"format": 1, "name": "mine_v1", "title": "Mine", "locale": {"base": "en"}, "fields": {"word": field}}
    )


def test_a_catastrophic_pattern_takes_no_time(start_gateway: StartGateway, tmp_path: Path) -> None:
    folder = tmp_path / "mappings"
    folder.mkdir()
    (folder / "mine_v1.json").write_text(_mapping("^(a+)+$|(a|aa)+b|(.*)*x{1,5}y"))
    gateway = start_gateway(None, gateway_mappings_dir=str(folder), gateway_parse_timeout="5")
    document = bad_pdfs.write(bad_pdfs.one_page(b"BT /F1 1 Tf 10 700 Td (" + b"a" * 5000 + b"!) Tj ET"))
    answer = gateway.send(document, mapping="mine_v1.json")
    assert answer.status_code == 200, answer.text
    assert "mine_v1" in [each["name"] for each in gateway.client.get("/mappings").json()["mappings"]]


def test_a_pattern_that_cannot_be_fast_stops_the_start(start_gateway: StartGateway, tmp_path: Path) -> None:
    folder = tmp_path / "mappings"
    folder.mkdir()
    (folder / "mine_v1.json").write_text(_mapping(r"(a)\1"))
    gateway = start_gateway(None, ready=False, gateway_mappings_dir=str(folder))
    assert gateway.process.wait(timeout=PATIENCE) == 2
    assert "fields.word.pattern" in gateway.log_text
