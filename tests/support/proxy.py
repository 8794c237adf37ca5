"""A reverse proxy that says who asked and how, as nginx does, in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support.child_processes import free_port
from support.zygote import start_program


class _Forwarder(BaseHTTPRequestHandler):
    upstream = 0
    scheme = "http"

    def _forward(self) -> None:
        said = self.headers.get("X-Forwarded-For")
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("x-forwarded")}
        seen = self.client_address[0]
        headers["X-Forwarded-For"] = f"{said}, {seen}" if said else seen
        headers["X-Forwarded-Proto"] = self.scheme
        headers["Connection"] = "close"
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=30)
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_POST = _forward  # noqa: N815 - names that the library looks for

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def proxy(upstream: int, folder: Path, *, scheme: str) -> Iterator[str]:
    """Run a proxy that clients reach by this scheme, as far as it says. Yields its address."""
    port = free_port()
    with (folder / "proxy.log").open("ab") as log:
        program = start_program(
            "support.proxy",
            env={"PROXY": f"{port} {upstream} {scheme}", "PYTHONPATH": str(Path(__file__).parent.parent)},
            output=log,
            cwd=folder,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        program.kill()
        program.wait(10)


if __name__ == "__main__":
    given_port, given_upstream, given_scheme = os.environ["PROXY"].split()
    _Forwarder.upstream, _Forwarder.scheme = int(given_upstream), given_scheme
    try:
        ThreadingHTTPServer(("127.0.0.1", int(given_port)), _Forwarder).serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)
