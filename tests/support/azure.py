"""Answers the few requests of Azure's blob protocol that a storage makes, from memory.

This is a fake, because Azure is not available offline. It was written from Azure's documentation, so it shows that we
follow the protocol, not that Azure accepts what we send.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from pydantic import SecretStr

from waybill.storage import Storage, open_storage
from waybill.storage.factory import StorageAccess

_KEY = base64.b64encode(b"a key of an account").decode()


class Container(ThreadingHTTPServer):
    """One container of one account. One lock guards everything, so any order of requests is valid."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.blocks: dict[tuple[str, str], bytes] = {}
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Answers)

    def storage(self) -> Storage:
        url = f"az://container/some/prefix?account=acme&endpoint=http://127.0.0.1:{self.server_address[1]}"
        return open_storage(url, StorageAccess(secret=SecretStr(_KEY), backoff=0.01))


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Container

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key, query = self._asked()
        with self.server.lock:
            if query.get("comp") == "block":
                self.server.blocks[key, query["blockid"]] = body
            elif query.get("comp") == "blocklist":
                names = re.findall(r"<(?:Latest|Uncommitted)>([^<]*)<", body.decode())
                self.server.blobs[key] = b"".join(self.server.blocks.pop((key, name)) for name in names)
            else:
                self.server.blobs[key] = body
        self._answer(201, headers={"ETag": '"x"'})

    def do_GET(self) -> None:
        key, query = self._asked()
        if query.get("comp") == "list":
            self._answer(200, self._listing(query.get("prefix", "")).encode())
            return
        with self.server.lock:
            blob = self.server.blobs.get(key)
        if blob is None:
            self._answer(404, b"<Error><Code>BlobNotFound</Code></Error>")
            return
        headers = {"ETag": f'"{hash(blob)}"', "Last-Modified": format_datetime(datetime.now(UTC), usegmt=True)}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("x-ms-range") or self.headers.get("Range") or "")
        if wanted is None:
            self._answer(200, blob, headers)
            return
        start, end = int(wanted[1]), min(int(wanted[2] or len(blob)) + 1, len(blob))
        if start >= len(blob):
            self._answer(416, b"<Error><Code>InvalidRange</Code></Error>")
            return
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(blob)}"
        self._answer(206, blob[start:end], headers)

    do_HEAD = do_GET  # noqa: N815 - the base class calls it so

    def do_POST(self) -> None:
        """Handle a batch of deletes, which are requests within a request."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answers = []
        for number, path in enumerate(re.findall(r"DELETE (\S+) HTTP/1.1", body)):
            with self.server.lock:
                found = self.server.blobs.pop(unquote(path).partition("/container/")[2], None)
            said = "202 Accepted" if found is not None else "404 Not there\r\nx-ms-error-code: BlobNotFound"
            head = f"Content-Type: application/http\r\nContent-ID: {number}"
            answers.append(f"--batch\r\n{head}\r\n\r\nHTTP/1.1 {said}\r\n\r\n")
        headers = {"Content-Type": "multipart/mixed; boundary=batch"}
        self._answer(202, ("".join(answers) + "--batch--\r\n").encode(), headers)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        assert "SharedKey acme:" in self.headers["Authorization"]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return unquote(parts.path).partition("/container/")[2], query

    def _listing(self, prefix: str) -> str:
        now = format_datetime(datetime.now(UTC), usegmt=True)
        with self.server.lock:
            found = sorted((key, len(blob)) for key, blob in self.server.blobs.items() if key.startswith(prefix))
        blobs = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{now}</Last-Modified><Etag>x</Etag>"
            f"<Content-Length>{size}</Content-Length><Content-Type>x</Content-Type></Properties></Blob>"
            for key, size in found
        )
        return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing; a failing test says more."""


@contextmanager
def azure_container() -> Iterator[Container]:
    with Container() as container:
        serving = threading.Thread(target=container.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield container
        finally:
            container.shutdown()
            serving.join()
