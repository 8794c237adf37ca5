"""h11's connection without its leniency, for all our servers.

Servers and proxies that read one stream of bytes differently can be played off against each other (request smuggling).
So whatever RFC 9112 lets a server either mend or refuse is refused here, before anybody reads the request:

- line ends without a carriage return, and headers that are folded onto a second line;
- a body with two lengths (`Content-Length` and `Transfer-Encoding`), or an encoding that HTTP/1.0 does not have;
- a `Host` that is no host, and a path that cannot be decoded.

h11 itself refuses malformed lines, contradicting lengths, signs and blanks in them, and malformed chunks. It checks the
size of a head only while the head is incomplete; we check it always.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import h11
from h11._receivebuffer import ReceiveBuffer

MOST_HEAD_BYTES = 16 * 1024
"""The most that a request's line and headers may take together, and the trailers after a chunked body."""

_HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")
_TARGET = re.compile(rb"(?:/|\*\Z|https?://)[!$-;=?-Z_a-z~%\[\]|^`{}\\\"<>]*", re.IGNORECASE)
"""Visible characters but `#`, which belongs to the browser. Old clients do not encode all that they should."""
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class StrictConnection(h11.Connection):
    """The server's side of a connection."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MOST_HEAD_BYTES)
        self._receive_buffer = _Lines()  # h11 has no other place where the bytes of a head can be seen
        self.refusal: h11.RemoteProtocolError | None = None
        """Why the client's bytes were refused. The connection cannot be used after that."""

    def next_event(self) -> Any:
        try:
            event = super().next_event()
            return _checked(event) if isinstance(event, h11.Request) else event
        except h11.RemoteProtocolError as error:
            self.refusal = error
            raise


class _Lines(ReceiveBuffer):
    """Received bytes. The lines of a head end in CR LF, and none of them continues another."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        found = self._data.find(b"\n\r\n")
        head = self._data[: found + 3] if found >= 0 else self._data
        if self._data[:2] == b"\r\n":
            head = self._data[:2]
        if len(head) > MOST_HEAD_BYTES:
            raise h11.LocalProtocolError("The request line and the headers are too long.", error_status_hint=431)
        if re.search(rb"(?<!\r)\n", head) or re.search(rb"\r(?!\n|\Z)", head):
            raise h11.LocalProtocolError("Lines must end with a carriage return and a line feed.")
        if b"\n " in head or b"\n\t" in head:
            raise h11.LocalProtocolError("A header must not be folded onto a second line.")
        return super().maybe_extract_lines()


def _checked(request: h11.Request) -> h11.Request:
    """The request, as its address on this server (RFC 9112, 3.2.2). Raises RemoteProtocolError."""
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise h11.RemoteProtocolError("A request has a Content-Length or a Transfer-Encoding, not both.")
        if request.http_version < b"1.1":
            raise h11.RemoteProtocolError("HTTP/1.0 has no Transfer-Encoding.")
    target, headers = request.target, list(request.headers)
    if not _TARGET.fullmatch(target):
        raise h11.RemoteProtocolError("The address in the request line is malformed.")
    if not target.startswith((b"/", b"*")):  # as clients write it to a proxy; its host counts
        try:
            parts = urlsplit(target)
        except ValueError:
            raise h11.RemoteProtocolError("The address in the request line is malformed.") from None
        headers = [(b"host", parts.netloc), *(each for each in headers if each[0] != b"host")]
        target = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
    _check_path(target.partition(b"?")[0])
    for name, value in headers:
        if name == b"host" and not _HOST.fullmatch(value):
            raise h11.RemoteProtocolError("The header Host is not a host name.")
    if target == request.target:
        return request
    return h11.Request(method=request.method, headers=headers, target=target, http_version=request.http_version)


def _check_path(path: bytes) -> None:
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        decoded = "\0"
    if _BROKEN_ESCAPE.search(path) or "\0" in decoded:
        raise h11.RemoteProtocolError("The path is not UTF-8 with %-encoding.")
