"""The health check of the images, as Docker runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy/images/healthcheck.py"


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server on loopback that gives one answer to `/readyz`, and its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
            return

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def check(port: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-IS", SCRIPT, "WAYBILL_API_PORT", str(port)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_a_service_is_healthy_if_it_says_that_it_is_ready(status: int, code: int) -> None:
    with answering(status) as port:
        done = check(port)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(str(status))


def test_the_port_of_the_setting_is_asked() -> None:
    with answering(200) as port:
        assert check(1, WAYBILL_API_PORT=str(port)).returncode == 0


def test_a_service_that_is_not_there_is_unhealthy_and_the_log_says_why() -> None:
    with answering(200) as port:
        pass
    done = check(port)
    assert done.returncode == 1
    assert done.stdout.startswith("ConnectionRefusedError")
    assert done.stderr == ""
