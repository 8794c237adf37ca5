"""`POST /extract` reads many documents in one request, and each has the answer that it would have alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from gateway.conftest import StartGateway
from support.gateway import Gateway, assert_problem
from support.packs import SECRET, extract, frames_of, pack_of
from support.rude_members import rude
from waybill.files.packs import end_frame, frame
from waybill.http.proofs import ask

OFFICE = Path(__file__).resolve().parents[3] / "shared" / "data" / "office"
RUDE = "support.rude_members:as_told"


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), gateway_secret=SECRET, max_upload_mb="8")
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text


@pytest.fixture(scope="module")
def letter() -> bytes:
    """A PDF that is not an invoice."""
    buffer = BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 700, "Hello, this is a letter.")
    canvas.save()
    return buffer.getvalue()


@pytest.fixture(scope="module")
def rude_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("rude"), RUDE, gateway_secret=SECRET, gateway_parse_timeout="3")
    yield gateway
    gateway.close()


def alone(gateway: Gateway, document: bytes) -> dict[str, object]:
    """What `/process` answers."""
    _, proof = ask(SECRET.encode(), "POST", "/process")
    return dict(gateway.send(document, headers=proof).json())


def test_each_document_has_its_answer_in_order(proven: Gateway, letter: bytes) -> None:
    documents = [
        *(("text", b"one"), ("png", b"\x89PNG"), ("text", b""), ("pdf", letter), ("pdf", b"%PDF-broken")),
        *(("doc", b"x"), ("encrypted_office", b"x"), ("text", b"a;b\n1;2\n"), ("xml", b"<a>b</a>")),
    ]
    found, end = frames_of(extract(proven, documents))
    assert [(header["no"], header["status"]) for header, _ in found] == list(
        enumerate((200, 415, 422, 200, 422, 415, 422, 200, 200))
    )
    assert all(header["ms"] >= 0 for header, _ in found)
    answers = [json.loads(content) for _, content in found]
    for index in (0, 3, 4, 7, 8):
        assert answers[index] == alone(proven, documents[index][1])
    assert answers[1]["key"] == "gateway.not_a_document"
    assert answers[2]["key"] == "text_file.empty"
    assert answers[5]["key"] == "office.old_word"
    assert (answers[6]["status"], answers[6]["fault"]) == (422, "encrypted")
    assert {answers[index]["status"] for index in (1, 5)} == {415}
    assert end == {"end": True, "bytes": 0}
    assert not proven.spooled()


def test_json_is_read_as_text(proven: Gateway) -> None:
    ((header, content),), _ = frames_of(extract(proven, [("json", b'{"a": 1}')]))
    assert (header["status"], json.loads(content)["pages"][0]["text"]) == (200, '{"a": 1}')


def test_office_documents_are_read_as_alone(proven: Gateway) -> None:
    if not OFFICE.exists():
        pytest.skip("there is no ../shared/data beside the repository")
    kinds = {".docx": "docx", ".xlsx": "xlsx"}
    paths = [path for path in sorted(OFFICE.rglob("*")) if path.suffix in kinds and path.stat().st_size < 200_000][:20]
    found, _ = frames_of(extract(proven, [(kinds[path.suffix], path.read_bytes()) for path in paths]))
    assert len(found) == len(paths) > 5
    for path, (header, content) in zip(paths, found, strict=True):
        expected = alone(proven, path.read_bytes())
        if header["status"] == 200:
            assert json.loads(content) == expected, path.name
        else:
            assert json.loads(content)["fault"] == expected["fault"], path.name


def test_a_body_without_documents_has_an_answer_without_any(proven: Gateway) -> None:
    assert frames_of(extract(proven, []))[0] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"text",
        pack_of([("text", b"x")])[:-1],
        pack_of([("text", b"x")]) + b"x",
        frame({"type": "text"}, b"x") + end_frame(),
        frame({"no": "1", "type": "text"}, b"x") + end_frame(),
        frame({"no": 1}, b"x") + end_frame(),
        frame({"no": 1, "type": "docm"}, b"x") + end_frame(),
        frame({"no": 1, "type": ["text"]}, b"x") + end_frame(),
        pack_of([("text", b"x")] * 65),
    ],
)
def test_a_body_that_is_no_pack_of_documents_is_refused(proven: Gateway, body: bytes) -> None:
    assert assert_problem(extract(proven, body), 400, "VALIDATION_ERROR")["key"] == "gateway.not_a_pack"
    assert not proven.spooled()


def test_another_type_of_body_is_refused(proven: Gateway) -> None:
    answer = extract(proven, [("text", b"x")], headers={"Content-Type": "application/zip"})
    assert_problem(answer, 400, "VALIDATION_ERROR")


def test_documents_that_are_too_large_together_are_refused(proven: Gateway) -> None:
    assert_problem(extract(proven, [("text", bytes(3 * 2**20))] * 4), 413, "TOO_LARGE")


def test_answers_that_do_not_fit_into_one_part_come_in_several(start_gateway: StartGateway) -> None:
    gateway = start_gateway(None, gateway_secret=SECRET, gateway_max_result_mb="1")
    text = ("word " * 80_000).encode()
    found, _ = frames_of(extract(gateway, [("text", text)] * 6 + [("text", text * 4)]))
    assert [header["status"] for header, _ in found] == [200] * 6 + [422]
    assert json.loads(found[-1][1])["key"] == "document.answer_too_large"


@pytest.mark.parametrize(("do", "fault"), [("crash", "parser_crashed"), ("memory", "too_much_memory")])
def test_a_document_that_kills_its_parser_has_its_own_problem(rude_gateway: Gateway, do: str, fault: str) -> None:
    texts = [b"one", b"two", rude(do=do), b"three", b"four"]
    found, _ = frames_of(extract(rude_gateway, [("text", text) for text in texts]))
    assert [(header["no"], header["status"]) for header, _ in found] == list(enumerate((200, 200, 422, 200, 200)))
    assert [json.loads(content) for _, content in found if b"status" not in content] == ["one", "two", "three", "four"]
    assert json.loads(found[2][1])["fault"] == fault


def test_a_parser_that_is_killed_costs_nothing(rude_gateway: Gateway) -> None:
    marker = rude_gateway.spool / next(rude_gateway.spool.glob("run-*")).name / "killed"
    found, _ = frames_of(extract(rude_gateway, [("text", b"a"), ("text", rude(do="killed", once=str(marker)))]))
    assert [header["status"] for header, _ in found] == [200, 200]
    marker.unlink()
    assert_problem(extract(rude_gateway, [("text", b"a"), ("text", rude(do="killed"))]), 503, "NOT_READY")
