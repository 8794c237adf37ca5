"""The multipart form, parsed while it arrives: the document goes to disk, its limit holds for every byte.

Not Starlette's `request.form()`: that knows no limit on a file, and copies it once more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from waybill_gateway.body import Body
from waybill_gateway.refusals import bad_form, too_large, too_slow

_FIELDS = ("mapping", "pretty", "job_id")
_MOST_PARTS = 20
_LONGEST_FIELD = 1024
_MOST_HEADERS, _LONGEST_HEADER = 8, 4096
OVERHEAD = 64 * 1024
"""Bytes that the form around a document may take: a few fields, headers and boundaries."""
_BUFFER = 256 * 1024
_SILENCE = 15.0
"""Seconds without a byte after which nobody waits any longer."""
_HEAD_START = 5.0
_SLOWEST = 16 * 1024
"""Bytes per second that a client must keep up after its first seconds: one that sends a byte now and then is let go."""
_BOUNDARY = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
"""RFC 2046: at most 70 characters, no blank at the end."""


@dataclass(slots=True)
class Form:
    """What was sent. The document itself is on disk."""

    fields: dict[str, str] = field(default_factory=dict)
    size: int | None = None
    """Bytes of the document; None without one."""


def boundary_of(content_type: str | None) -> bytes:
    """What parts the parts, from the request's `Content-Type`; refuses what is no multipart form."""
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise bad_form("Send the document as multipart/form-data, in the field 'file'.")
    boundary = options.get(b"boundary", b"")
    if not _BOUNDARY.fullmatch(boundary):
        raise bad_form("The Content-Type header has no usable boundary.")
    return boundary


async def receive_form(
    body: Body,
    boundary: bytes,
    document: Path,
    *,
    megabytes: int,
    seconds: float,
    on_field: Callable[[str, str], None],
) -> Form:
    """Read the whole form within its limits. `on_field` sees a field at once and may refuse it."""
    receiver = _Receiver(boundary, megabytes, on_field)
    chunks = body.chunks()
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with document.open("wb") as file:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        earned = began + _HEAD_START + receiver.received / _SLOWEST
                        async with asyncio.timeout_at(min(loop.time() + _SILENCE, earned)):
                            chunk = await anext(chunks)
                    except StopAsyncIteration:
                        break
                    receiver.feed(chunk)
                    await receiver.write_to(file)
                await receiver.write_to(file, all_of_it=True)
    except TimeoutError:
        raise too_slow(min(seconds, loop.time() - began)) from None
    except FormParserError as error:
        raise bad_form("The form is not well-formed multipart/form-data.") from error
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]
    return receiver.form()


class _Receiver:
    """The parser's callbacks, and what they have gathered so far."""

    def __init__(self, boundary: bytes, megabytes: int, on_field: Callable[[str, str], None]) -> None:
        self._megabytes = megabytes
        self._most = megabytes * 1024 * 1024
        self._on_field = on_field
        self._form = Form()
        self.received = 0
        self._parts = 0
        self._complete = False
        self._header = (bytearray(), bytearray())
        self._name: str | None = None
        self._value = bytearray()
        self._unwritten = bytearray()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_begin": self._header_begins,
                "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._part_ends,
                "on_end": self._end,
            },
            max_header_count=_MOST_HEADERS,
            max_header_size=_LONGEST_HEADER,
        )

    def feed(self, chunk: bytes) -> None:
        self.received += len(chunk)
        # Also what stands around the parts counts, or somebody could send for ever.
        if self.received > self._most + OVERHEAD:
            raise too_large(self._megabytes)
        self._parser.write(chunk)

    async def write_to(self, file: BinaryIO, *, all_of_it: bool = False) -> None:
        """Write what has gathered, in a thread: a busy disk must not stop everybody else's requests."""
        if len(self._unwritten) > _BUFFER or (all_of_it and self._unwritten):
            data, self._unwritten = self._unwritten, bytearray()
            await asyncio.to_thread(file.write, data)

    def form(self) -> Form:
        if not self._complete:
            raise bad_form("The form ends before its last boundary.")
        return self._form

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise bad_form(f"The form has more than {_MOST_PARTS} parts.")
        self._name = None
        self._value = bytearray()

    def _header_begins(self) -> None:
        self._header = (bytearray(), bytearray())

    def _header_ends(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            kind, options = parse_options_header(bytes(value))
            if kind == b"form-data" and b"name" in options:
                self._name = options[b"name"].decode("latin-1")

    def _headers_end(self) -> None:
        if self._name is None:
            raise bad_form("A part of the form has no name.")
        if self._name == "file":
            if self._form.size is not None:
                raise bad_form("The form has more than one 'file'.")
            self._form.size = 0

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._name == "file" and self._form.size is not None:
            self._form.size += end - start
            if self._form.size > self._most:
                raise too_large(self._megabytes)
            self._unwritten += data[start:end]
        elif self._name in _FIELDS:
            self._value += data[start:end]
            if len(self._value) > _LONGEST_FIELD:
                raise bad_form(f"The field '{self._name}' is longer than {_LONGEST_FIELD} bytes.")

    def _part_ends(self) -> None:
        # Fields we do not know are of no interest: a newer client may send them.
        if self._name not in _FIELDS:
            return
        if self._name in self._form.fields:
            raise bad_form(f"The field '{self._name}' is there twice.")
        try:
            value = self._value.decode().strip()
        except UnicodeDecodeError:
            raise bad_form(f"The field '{self._name}' is not UTF-8.") from None
        self._form.fields[self._name] = value
        self._on_field(self._name, value)

    def _end(self) -> None:
        self._complete = True
