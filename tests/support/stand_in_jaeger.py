"""Stands in for Jaeger, which we do not own and few machines have: takes spans by OTLP over HTTP, and says that it did.

Run with the configuration that `waybill up --observe` writes. `/api/services` answers as Jaeger's does, with one name
for all that sent something.
"""

from __future__ import annotations

import http.server
import json
import sys
import threading
from pathlib import Path

_received = threading.Event()


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        if self.rfile.read(int(self.headers["Content-Length"])):
            _received.set()
        self.send_response(200)
        self.send_header("Content-Type", self.headers["Content-Type"])
        self.send_header("Content-Length", "0")
        self.end_headers()


class Query(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = json.dumps({"data": ["somebody"] if _received.is_set() else []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def main() -> None:
    configuration = json.loads(Path(sys.argv[1].removeprefix("--config=file:")).read_text(encoding="utf-8"))
    endpoints = {
        Collector: configuration["receivers"]["otlp"]["protocols"]["http"]["endpoint"],
        Query: configuration["extensions"]["jaeger_query"]["http"]["endpoint"],
    }
    for handler, endpoint in endpoints.items():
        host, _, port = endpoint.rpartition(":")
        server = http.server.ThreadingHTTPServer((host, int(port)), handler)
        threading.Thread(target=server.serve_forever, daemon=handler is Collector).start()


if __name__ == "__main__":
    main()
