"""Uploads: every limit holds while bytes arrive, whatever the client claims, and nothing stays on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import socket
import time
from typing import Any

import pytest

from gateway.conftest import StartGateway
from support.gateway import (
    BOUNDARY,
    Gateway,
    assert_problem,
    chunked,
    form,
    head,
    part,
    read_all,
    told,
)
from support.patience import wait_until

MB = 1024 * 1024


def answered(raw: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of an answer that came over a plain socket."""
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def wait_for_uploads(gateway: Gateway, count: int) -> None:
    wait_until(lambda: len(gateway.spooled()) == count, f"the begin of {count} uploads")


@pytest.fixture(autouse=True)
def _leaves_nothing(obedient: Gateway) -> Any:
    yield
    wait_until(lambda: obedient.spooled() == [], "an empty spool")


def test_a_document_arrives_byte_by_byte_as_it_was_sent(obedient: Gateway) -> None:
    noise = random.Random(4).randbytes(700_000) + f"\r\n--{BOUNDARY[:-3]}\r\n--".encode() * 50
    document = b"%PDF-1.7\n" + noise
    answer = obedient.send(document).json()
    assert answer["size"] == len(document)
    assert answer["sha256"] == hashlib.sha256(document).hexdigest()


@pytest.mark.parametrize("order", ["before", "after"])
def test_fields_may_come_before_or_after_the_file(obedient: Gateway, order: str) -> None:
    fields = [part("mapping", b"pt_simon_invoice_v1"), part("pretty", b"1"), part("job_id", b"j-1")]
    file = part("file", b"%PDF-1.7", filename="a.pdf")
    body = form(*fields, file) if order == "before" else form(file, *fields)
    status, call = answered(obedient.raw(head(Content_Length=str(len(body)), Connection="close"), body))
    assert status == 200
    assert (call["mapping"], call["pretty"], call["problem"]["job_id"]) == ("pt_simon_invoice_v1", True, "j-1")


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_the_form_may_arrive_in_pieces_of_any_size(obedient: Gateway, piece: int) -> None:
    body = form(part("file", b"%PDF-1.7\n" + b"\r\n--x" * 100), part("pretty", b"1"))
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    raw = obedient.raw(head(Transfer_Encoding="chunked", Connection="close"), *chunked(pieces))
    status, call = answered(raw)
    assert status == 200
    assert call["size"] == 9 + 500


def test_the_largest_document_that_is_taken(obedient: Gateway) -> None:
    assert obedient.send(b"%PDF-".ljust(MB, b"x")).json()["size"] == MB
    assert_problem(obedient.send(b"%PDF-".ljust(MB + 1, b"x")), 413, "TOO_LARGE")


def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(obedient: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", obedient.port), timeout=30) as connection:
        request = head(Content_Length=str(10 * MB), Expect="100-continue")
        connection.sendall(request.replace("\n", "\r\n").encode())
        status, problem = answered(read_all(connection))
    assert (status, problem["code"]) == (413, "TOO_LARGE")


def test_the_limit_holds_without_a_length(obedient: Gateway) -> None:
    # For ever, if it were let: the gateway has to say no on its own, and hang up.
    endless = (part("file", b"%PDF-" + b"x" * MB, filename="a.pdf"), *([b"x" * MB] * 400))
    raw = obedient.raw(head(Transfer_Encoding="chunked"), *list(chunked(endless)))
    status, problem = answered(raw)
    assert (status, problem["code"]) == (413, "TOO_LARGE")


def test_the_limit_holds_for_what_stands_around_the_document(obedient: Gateway) -> None:
    epilogue = form(part("file", b"%PDF-1.7")) + b"x" * 3 * MB
    raw = obedient.raw(head(Transfer_Encoding="chunked"), *list(chunked([epilogue])))
    assert answered(raw)[0] == 413


def test_a_length_that_lies_gets_no_answer_and_leaves_nothing(obedient: Gateway) -> None:
    body = form(part("file", b"%PDF-1.7"))
    obedient.raw(head(Content_Length=str(len(body) + 100)), body, hang_up=True)
    assert obedient.send(told()).status_code == 200


def test_a_client_that_leaves_in_the_middle_leaves_nothing(obedient: Gateway) -> None:
    half = part("file", b"%PDF-" + b"x" * 500_000)
    obedient.raw(head(Content_Length=str(900_000)), half, hang_up=True)
    assert obedient.send(told()).status_code == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (form(part("mapping", b"pt_simon_invoice_v1")), "no 'file'"),
        (form(part("file", b"%PDF-1"), part("file", b"%PDF-2")), "more than one 'file'"),
        (form(part("file", b"%PDF-1"), part("pretty", b"1"), part("pretty", b"0")), "twice"),
        (form(part("file", b"%PDF-1"), part("pretty", b"yes")), "0 or 1"),
        (form(part("file", b"%PDF-1"), part("loss", b"some")), "strict or lenient"),
        (form(part("file", b"%PDF-1"), part("mapping", b"\xff\xfe")), "UTF-8"),
        (form(part("file", b"%PDF-1"), part("mapping", b"x" * 2000)), "longer than"),
        (form(part("file", b"%PDF-1"), *(part(f"f{n}", b"x") for n in range(30))), "more than 20 parts"),
        (form(part("file", b"%PDF-1"), part("job_id", b"../../etc")), "job id"),
        (part("file", b"%PDF-1"), "ends before"),
        (b"", "ends before"),
        (b"no form at all", "well-formed"),
        (f"--{BOUNDARY}\r\n{'X: y' * 5000}\r\n\r\n".encode(), "well-formed"),
        (f"--{BOUNDARY}\r\n".encode() + b"X: y\r\n" * 50 + b"\r\n\r\n", "well-formed"),
        (f"--{BOUNDARY}\r\nContent-Type: text/plain\r\n\r\nx\r\n--{BOUNDARY}--\r\n".encode(), "no name"),
    ],
)
def test_a_bad_form_is_refused_with_a_sentence_about_it(obedient: Gateway, body: bytes, says: str) -> None:
    raw = obedient.raw(head(Content_Length=str(len(body)), Connection="close"), body)
    status, problem = answered(raw)
    assert (status, problem["code"]) == (400, "VALIDATION_ERROR")
    assert says in problem["detail"]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/pdf",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=x",
        "x" * 999,
    ],
)
def test_what_is_no_form_is_refused(obedient: Gateway, content_type: str) -> None:
    answer = obedient.client.post("/process", content=b"%PDF-1.7", headers={"Content-Type": content_type})
    assert_problem(answer, 400, "VALIDATION_ERROR")


def test_fields_nobody_knows_are_ignored(obedient: Gateway) -> None:
    assert obedient.send(told(), colour="green", other="x" * 100_000).status_code == 200


def test_bytes_that_are_no_request_get_a_problem_document(obedient: Gateway) -> None:
    status, problem = answered(obedient.raw("NONSENSE\n\n"))
    assert (status, problem["code"]) == (400, "VALIDATION_ERROR")


def test_a_client_that_stops_in_the_middle_is_not_waited_for(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_upload_timeout="1", gateway_queue="0")
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall(head(Content_Length="1000").replace("\n", "\r\n").encode() + part("file", b"%PDF-")[:-2])
        status, problem = answered(read_all(connection))
    assert (status, problem["code"]) == (408, "TIMEOUT")
    assert gateway.send(told()).status_code == 200, "its place is free again"
    assert gateway.spooled() == []


def test_clients_that_send_slowly_do_not_keep_others_from_being_parsed(start_gateway: StartGateway) -> None:
    gateway = start_gateway(gateway_queue="1")
    begun = part("file", b"%PDF-" + bytes(400_000))[:-2]  # enough that they may be silent for a while
    request = head(Content_Length="1000000").replace("\n", "\r\n").encode() + begun
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=30))
            connection.sendall(request)
        wait_for_uploads(gateway, 2)
        while (status := gateway.send(told()).status_code) == 503:
            assert len(gateway.spooled()) == 2, "they have gone, and still nobody is let in"
            time.sleep(0.05)
        assert status == 200
        wait_for_uploads(gateway, 2)


@pytest.mark.heavy
def test_a_client_that_sends_a_byte_now_and_then_is_let_go(obedient: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", obedient.port), timeout=30) as connection:
        connection.sendall(head(Content_Length="100000").replace("\n", "\r\n").encode() + part("file", b"%PDF-")[:-2])
        connection.settimeout(0.2)
        began = time.monotonic()
        received = b""
        while not received and time.monotonic() - began < 60:
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                received = connection.recv(65536)
        assert 4 < time.monotonic() - began < 60
        connection.settimeout(30)
        status, problem = answered(received + read_all(connection))
    assert (status, problem["code"]) == (408, "TIMEOUT")


@pytest.mark.heavy
def test_a_connection_that_never_says_what_it_wants_is_closed(obedient: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", obedient.port), timeout=30) as connection:
        connection.sendall(b"POST /process HTTP/1.1\r\nHost: waybill\r\nX-Slow: ")
        began = time.monotonic()
        assert read_all(connection) == b""
    assert 5 < time.monotonic() - began < 60


def test_a_large_upload_is_never_in_memory(start_gateway: StartGateway) -> None:
    gateway = start_gateway(max_upload_mb="70")
    gateway.send(told())
    before = gateway.memory()
    document = b"%PDF-1.7\n" + b"x" * (60 * MB)
    assert gateway.send(document).json()["size"] == len(document)
    assert gateway.memory() - before < 20 * MB


def test_a_large_answer_is_never_in_memory(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    gateway.send(told())
    before = gateway.memory()
    assert len(gateway.send(told(padding=60 * MB)).content) > 60 * MB
    assert gateway.memory() - before < 20 * MB
