"""The server of metrics, and clients that are slow, rude or many."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from support.scrapes import OPENMETRICS, read
from waybill.config import ProcessSettings
from waybill.telemetry import metrics_server, small_server
from waybill.telemetry.small_server import Headers, Respond, SmallAnswer, SmallServer, listen

BIG = b"x" * 30_000_000


async def _fail(_headers: Headers) -> SmallAnswer:
    raise RuntimeError("a bug")


async def _big(_headers: Headers) -> SmallAnswer:
    return SmallAnswer(BIG)


@pytest.fixture
def port() -> Iterator[int]:
    listener = listen("127.0.0.1", 0)
    found: int = listener.getsockname()[1]
    routes: dict[str, Respond] = {"/metrics": metrics_server.MetricsPage("api"), "/fail": _fail, "/big": _big}
    server = SmallServer(routes, listener, "test")
    server.start()
    yield found
    server.stop()


@pytest.fixture
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
        yield client


def raw(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def test_it_speaks_the_formats_that_clients_ask_for(client: httpx.Client) -> None:
    plain = client.get("/metrics", headers={"Accept-Encoding": ""})
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert read(plain.text).value("waybill_upload_bytes_total") >= 0
    rich = client.get("/metrics?x=1", headers=OPENMETRICS)
    assert rich.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert rich.headers["content-encoding"] == "gzip"
    assert rich.text.endswith("# EOF\n")
    assert (
        client.get("/metrics", headers={"Accept": "application/openmetrics-text;q=0, */*"})
        .headers["content-type"]
        .startswith("text/plain")
    )
    refused = client.get("/metrics", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refused.headers


def test_head_not_found_and_other_methods(client: httpx.Client) -> None:
    head = client.head("/metrics")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0
    assert client.get("/").status_code == 404
    post = client.post("/metrics", content=b"x" * 100_000)
    assert (post.status_code, post.headers["allow"]) == (405, "GET, HEAD")
    assert client.get("/fail").status_code == 500
    assert client.get("/metrics").status_code == 200, "a bug in one answer ends nothing"


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"GET /metrics\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x00\xff\xfe\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET http://other/metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /../metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 "),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n: \r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /metrics HTTP/1.1\r\nAccept: " + b"a" * 20_000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (b"GET /metrics HTTP/1.1\r\nAccept: ;;,=;q\r\nAccept-Encoding: ;,gzip ; q=x\r\n\r\n", b"HTTP/1.1 200 "),
    ],
)
def test_malformed_requests_are_answered(port: int, request_: bytes, answer: bytes) -> None:
    assert raw(port, request_).startswith(answer)


def test_slow_and_silent_clients_delay_nobody_and_are_cut_off(
    port: int, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_server, "_HEAD_WITHIN", 0.5)
    monkeypatch.setattr(small_server, "_SENT_WITHIN", 0.5)
    silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(10)]
    deaf = socket.create_connection(("127.0.0.1", port), timeout=30)
    deaf.sendall(b"GET /big HTTP/1.1\r\n\r\n")  # and reads nothing

    assert client.get("/metrics").status_code == 200

    assert [one.recv(1) for one in silent] == [b""] * 10
    received = 0
    try:
        while chunk := deaf.recv(1 << 20):
            received += len(chunk)
    except ConnectionResetError:
        pass
    assert received < len(BIG)
    for one in (*silent, deaf):
        one.close()


def test_a_crowd_of_silent_clients_keeps_nobody_out(port: int, client: httpx.Client) -> None:
    """The worker's probes are answered here: whoever keeps them out has Kubernetes kill the worker."""
    crowd = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(60)]
    assert client.get("/metrics").status_code == 200
    assert crowd[0].recv(1) == b"", "whoever has been silent for longest makes room"
    deaf = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
    for one in deaf:
        with contextlib.suppress(ConnectionError):  # it had to make room already
            one.sendall(b"GET /big HTTP/1.1\r\n\r\n")
    assert client.get("/metrics").status_code == 200
    crowd += deaf
    for one in crowd:
        one.close()


def test_it_answers_while_the_main_thread_is_busy(port: int) -> None:
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(len(raw(port, b"GET /metrics HTTP/1.1\r\n\r\n"))))
    asking.start()
    deadline = time.monotonic() + 30
    while not answers and time.monotonic() < deadline:  # as a handler that blocks the loop
        sum(range(10_000))
    assert answers


def test_a_taken_port_costs_the_service_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with metrics_server.serving(ProcessSettings(), "api", port):
            pass
    assert "WAYBILL_API_METRICS_PORT" in capsys.readouterr().out


def test_an_answer_is_packed_only_if_that_is_worth_it(client: httpx.Client) -> None:
    assert "content-encoding" not in client.get("/nothing").headers
    with client.stream("GET", "/metrics", headers={"Accept-Encoding": "gzip"}) as answer:
        assert b"waybill_build_info" in gzip.decompress(b"".join(answer.iter_raw()))
