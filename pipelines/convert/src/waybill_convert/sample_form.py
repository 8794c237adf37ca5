"""Receives a sample of a mapping: a document, its name, and the data that must be read from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from waybill.errors import TooLarge
from waybill.files import FileType, safe_name
from waybill.http.multipart import OVERHEAD, BadForm, FormReader, Part, boundary_of
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.guards import TooSlow
from waybill_convert.revision_models import Json
from waybill_convert.sample_service import MOST_SAMPLE_MB
from waybill_convert.upload_contents import UploadContent, suffix_of

MOST_EXPECTED_BYTES = 1024 * 1024
_DEEPEST = 20
"""Levels of expected data. What we read has three: a table, its rows, and their values."""
MOST_FORM_BYTES = MOST_SAMPLE_MB * 2**20 + MOST_EXPECTED_BYTES + OVERHEAD


@dataclass(slots=True)
class SampleForm:
    name: str
    document: bytes
    kind: FileType
    expected: Json | None


async def receive_sample(request: Request, *, seconds: float) -> SampleForm:
    """Receive the form: `file`, and perhaps `name` and `expected`. A sample is small enough to be held in memory."""
    boundary = boundary_of(request.headers.get("content-type"))
    try:
        async with asyncio.timeout(seconds):
            return await _received(FormReader(request.stream(), boundary, most_bytes=MOST_FORM_BYTES, most_parts=10))
    except TimeoutError:
        raise TooSlow(msg("convert.upload.too_slow")) from None


async def _received(reader: FormReader) -> SampleForm:
    name: str | None = None
    document: bytearray | None = None
    kind = FileType.EMPTY
    expected: Json | None = None
    async for part in reader.parts():
        if part.name == "file" and part.is_file:
            if document is not None:
                raise BadForm(msg("convert.upload.field_twice", name="file"))
            document = bytearray()
            file = safe_name(part.filename or "sample")
            name = name or file[: len(file) - len(suffix_of(file))]
            content = UploadContent(part.filename or "", part.content_type)
            async for chunk in content.checked(_bounded(part)):
                document += chunk
            kind = content.kind
        elif part.name == "name":
            name = safe_name((await part.text(200)).strip() or "sample")
        elif part.name == "expected":
            expected = _data(await part.text(MOST_EXPECTED_BYTES))
    if document is None:
        raise BadForm(msg("convert.upload.no_document"))
    return SampleForm(name or "sample", bytes(document), kind, expected)


async def _bounded(part: Part) -> AsyncIterator[bytes]:
    total = 0
    async for chunk in part.chunks():
        total += len(chunk)
        if total > MOST_SAMPLE_MB * 2**20:
            raise TooLarge(msg("convert.upload.too_large", megabytes=MOST_SAMPLE_MB))
        yield chunk


def _data(text: str) -> Json | None:
    """The expected data: an object, or one of our own answers, whose `data` is meant."""
    if not text.strip():
        return None
    try:
        found: Any = json.loads(text)
        if isinstance(found, dict) and "mapping" in found and isinstance(found.get("data"), dict):
            found = found["data"]
        # Numbers that are infinite or none are no JSON, though Python reads and writes them.
        stored = json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise BadForm(msg("convert.mapping.expected")) from None
    if not isinstance(found, dict) or not is_storable(stored) or "\\u0000" in text or _is_deep(found):
        raise BadForm(msg("convert.mapping.expected"))
    return found


def _is_deep(value: Any) -> bool:
    """Whether it is nested so deeply that it can be no data of ours, nor be compared with any."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
