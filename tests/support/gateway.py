"""Runs a gateway as a process of its own on a free port, and sends it requests, including malformed ones."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from support.child_processes import free_port
from support.patience import PATIENCE
from support.zygote import Program
from waybill.messages import Message, languages
from waybill.pg_text import storable
from waybill_documents.messages import DocumentMessage

TESTS = Path(__file__).parents[1]
RUDE = "support.rude_parses:as_told"


class Gateway:
    """A gateway that runs until `close`. With `ready=False` the test does not wait until it accepts documents."""

    def __init__(self, folder: Path, parse: str | None = None, *, ready: bool = True, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        self.spool = folder / "spool"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "log"
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE)
        address = f"waybill-gateway-{os.getpid()}-{secrets.token_hex(4)}"
        environment = {
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "WAYBILL_GATEWAY_PORT": str(self.port),
            "WAYBILL_GATEWAY_SPOOL_DIR": str(self.spool),
            "WAYBILL_GATEWAY_PROCESSES": "1",
            "WAYBILL_GATEWAY_OPEN": "true",
            "WAYBILL_LOG_FORMAT": "json",
            "NOTIFY_SOCKET": f"@{address}",
            **{f"WAYBILL_{name.upper()}": value for name, value in settings.items()},
        }
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, self._log.open("ab") as log:
            notices.bind(f"\0{address}")
            notices.settimeout(0.1)
            arguments = [parse] if parse else []
            self.process = Program("support.gateway_program", *arguments, env=environment, output=log, cwd=folder)
            if ready:
                self._wait_for(notices)

    def _wait_for(self, notices: socket.socket) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(TimeoutError):
                if notices.recv(100) == b"READY=1":
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise AssertionError(f"the gateway does not start:\n{self.log_text}")

    def send(
        self,
        document: bytes | None,
        *,
        accept: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
        **fields: str,
    ) -> httpx.Response:
        """Send `POST /process` like an ordinary client."""
        given = {**({"Accept": accept} if accept is not None else {}), **(headers or {})}
        files = {"file": ("a.bin", document, "application/octet-stream")} if document is not None else {"x": b""}
        return self.client.post("/process", files=files, data=fields, headers=given)

    def raw(self, head: str, *chunks: bytes, hang_up: bool = False) -> bytes:
        """Send bytes unchanged, and read the answer until the gateway closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(head.replace("\n", "\r\n").encode())
                for chunk in chunks:
                    connection.sendall(chunk)
            return b"" if hang_up else read_all(connection)

    @property
    def log(self) -> list[dict[str, Any]]:
        """Every line of the log so far."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def log_text(self) -> str:
        return self._log.read_text()

    def parsers(self) -> list[psutil.Process]:
        return [each for each in psutil.Process(self.process.pid).children(recursive=True) if each.is_running()]

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def spooled(self) -> list[Path]:
        """The documents and answers that are on disk at this moment."""
        return [path for path in self.spool.rglob("*") if path.is_file() and path.name != "lock"]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.stop()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received


def told(**what: Any) -> bytes:
    """A document that tells `rude_parses.as_told` what to do."""
    return b"%PDF-" + json.dumps(what).encode() + b"\n"


BOUNDARY = "waybill-test-boundary"


def part(name: str, value: bytes, *, filename: str | None = None) -> bytes:
    disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
    return f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def head(*, accept: str = "application/json", **headers: str) -> str:
    """The head of a request to `/process`."""
    lines = {
        "Host": "waybill",
        "Accept": accept,
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return "POST /process HTTP/1.1\n" + "".join(f"{name}: {value}\n" for name, value in lines.items()) + "\n"


def chunked(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The pieces encoded for `Transfer-Encoding: chunked`."""
    for piece in pieces:
        yield f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    yield b"0\r\n\r\n"


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    problem: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert (problem["status"], problem["code"]) == (status, code)
    assert "Traceback" not in answer.text
    assert storable(problem["detail"]).endswith(in_words(problem, "en"))
    assert in_words(problem, "id") != in_words(problem, "en")
    return problem


def in_words(problem: Mapping[str, Any], language: str) -> str:
    """What a problem document says, by its key alone: in the platform's words, or in those of the document library."""
    key, params = problem["key"], problem["params"]
    said = languages()[language].tell(Message(key, params)) or DocumentMessage.stored("", key, params).in_language(
        language
    )
    assert said, f"{language} has no words for {key} with {params}"
    return said
