"""multipart/form-data, read while it arrives: the parts one after the other, each in pieces, none of them kept.

A client sends only as fast as we read. The parser is python-multipart's; we make its events awaitable, and limit
everything.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any, Literal

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from waybill.errors import Code, Refused, TooLarge
from waybill.messages import msg

_BOUNDARY = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
"""RFC 2046 allows at most 70 characters, and no blank at the end."""
_CHARSETS = frozenset({"utf-8", "iso-8859-1"})
"""The character sets of RFC 8187."""
_MOST_HEADERS, _LONGEST_HEADER = 8, 4096
OVERHEAD = 64 * 1024
"""Bytes that the form around the documents may take: fields, headers and boundaries."""


class BadForm(Refused):
    """We cannot read the form. The status is 400, because the request itself is broken."""

    status = 400
    code = Code.VALIDATION_ERROR


@dataclass(slots=True)
class Part:
    """One part of the form. Read its data before you take the next part; unread data is skipped."""

    name: str
    filename: str | None
    content_type: str | None
    _reader: FormReader

    @property
    def is_file(self) -> bool:
        return self.filename is not None

    async def chunks(self) -> AsyncIterator[bytes]:
        while (event := await self._reader.next_event(self)) is not None:
            yield event

    async def text(self, most: int) -> str:
        """A field's value; BadForm if it is longer than `most` bytes or not UTF-8."""
        value = bytearray()
        async for chunk in self.chunks():
            value += chunk
            if len(value) > most:
                raise BadForm(msg("form.field_too_long", name=self.name[:50], number=most))
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BadForm(msg("form.field_not_utf8", name=self.name[:50])) from None


def boundary_of(content_type: str | None) -> bytes:
    """The boundary from the request's `Content-Type`; BadForm if that is not a multipart form."""
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise BadForm(msg("form.wanted"))
    boundary = options.get(b"boundary", b"")
    if not _BOUNDARY.fullmatch(boundary):
        raise BadForm(msg("form.boundary"))
    return boundary


class FormReader:
    """Reads the parts of a form from `body`: at most `most_bytes` bytes and `most_parts` parts."""

    def __init__(self, body: AsyncIterator[bytes], boundary: bytes, *, most_bytes: int, most_parts: int) -> None:
        self._body = body
        self._most_bytes = most_bytes
        self._most_parts = most_parts
        self._received = 0
        self._parts = 0
        self._events: deque[Part | bytes | Literal["end"]] = deque()
        self._complete = False
        self._exhausted = False
        self._header = (bytearray(), bytearray())
        self._named: dict[bytes, bytes] = {}
        self._content_type: str | None = None
        self._current: Part | None = None
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_begin": self._header_begins,
                "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": lambda data, start, end: self._events.append(
                    data if start == 0 and end == len(data) else data[start:end]
                ),
                "on_part_end": lambda: self._events.append("end"),
                "on_end": self._end,
            },
            max_header_count=_MOST_HEADERS,
            max_header_size=_LONGEST_HEADER,
        )

    async def parts(self) -> AsyncIterator[Part]:
        """Every part in the order it was sent; BadForm if the form is malformed or incomplete."""
        while True:
            if not self._events:
                if not await self._more():
                    break
                continue
            event = self._events.popleft()
            if isinstance(event, Part):
                self._current = event
                yield event
        if not self._complete:
            raise BadForm(msg("form.cut_off"))

    async def next_event(self, part: Part) -> bytes | None:
        """The next piece of a part; None at its end."""
        if self._current is not part:
            return None
        while not self._events:
            if not await self._more():
                raise BadForm(msg("form.cut_off"))
        if isinstance(self._events[0], bytes):
            return self._events.popleft()  # type: ignore[return-value]
        self._current = None
        return None

    async def _more(self) -> bool:
        """Read another chunk; false at the end of the body."""
        if self._exhausted:
            return False
        try:
            chunk = await anext(self._body)
        except StopAsyncIteration:
            self._exhausted = True
            return False
        self._received += len(chunk)
        # Bytes between the parts count as well, or a client could send for ever.
        if self._received > self._most_bytes:
            raise TooLarge(msg("request.too_large", megabytes=self._most_bytes // 2**20))
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise BadForm(msg("form.malformed")) from error
        return True

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > self._most_parts:
            raise BadForm(msg("form.too_many_parts", number=self._most_parts))
        self._named = {}
        self._content_type = None

    def _header_begins(self) -> None:
        self._header = (bytearray(), bytearray())

    def _header_ends(self) -> None:
        name, value = bytes(self._header[0]).lower(), bytes(self._header[1])
        if name == b"content-disposition":
            kind, options = parse_options_header(value)
            self._named = options if kind == b"form-data" else {}
            if (given := _extended_filename(value)) is not None and b"name" in self._named:
                self._named[b"filename"] = given
        elif name == b"content-type":
            self._content_type = parse_options_header(value)[0].decode("latin-1").strip().lower()

    def _headers_end(self) -> None:
        if b"name" not in self._named:
            raise BadForm(msg("form.part_unnamed"))
        filename = self._named.get(b"filename")
        self._events.append(
            Part(
                self._named[b"name"].decode("utf-8", "replace"),
                filename.decode("utf-8", "replace") if filename is not None else None,
                self._content_type,
                self,
            )
        )

    def _end(self) -> None:
        self._complete = True


def _extended_filename(disposition: bytes) -> bytes | None:
    """A name given as `filename*=` (RFC 8187), in UTF-8. Forms should not use it, but some programs do."""
    if b"filename*" not in disposition.lower():
        return None
    message = Message()
    message["content-disposition"] = disposition.decode("latin-1")
    try:
        params: Any = message.get_params([], header="content-disposition")
    except (TypeError, ValueError):  # the library raises these when the parts of a name do not fit together
        return None
    for name, value in params:
        if name.lower() == "filename" and isinstance(value, tuple) and (value[0] or "").lower() in _CHARSETS:
            return collapse_rfc2231_value(value, errors="replace").encode()
    return None
