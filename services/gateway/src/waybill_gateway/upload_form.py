"""Receives the multipart form: the document goes to disk as it arrives, and the size limit holds for every byte.

We do not use Starlette's `request.form()`, which has no limit on a file's size and copies the file once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from waybill.errors import TooLarge
from waybill.http.multipart import OVERHEAD, BadForm, FormReader, Part
from waybill.messages import msg
from waybill_gateway.body import Body
from waybill_gateway.refusals import too_large, too_slow, unreadable_form
from waybill_gateway.spool import RequestFiles

_MOST_PARTS = 20
_LONGEST_FIELD = 1024
MOST_MAPPINGS_MB = 4
"""The mappings that one of our services may send with a document."""
_BUFFER = 256 * 1024
_SILENCE = 15.0
"""Seconds without a byte after which we give up."""
_HEAD_START = 5.0
_SLOWEST = 16 * 1024
"""Bytes per second that a client must send on average after the first seconds."""


@dataclass(slots=True)
class DocumentForm:
    """The fields that were sent. The document and the mappings are on disk."""

    fields: dict[str, str] = field(default_factory=dict)
    size: int | None = None
    """Bytes of the document; None if there was none."""
    has_mappings: bool = False


async def receive_form(
    body: Body,
    boundary: bytes,
    files: RequestFiles,
    *,
    fields: Collection[str],
    megabytes: int,
    seconds: float,
    on_field: Callable[[str, str], None],
    takes_mappings: Callable[[], bool],
    room: int = 0,
) -> DocumentForm:
    """Read the whole form within its limits. `on_field` gets each of the `fields` as it arrives and may refuse it.

    `takes_mappings` is asked when `mappings` arrive, and may refuse them. They have `room` bytes beside the document.
    """
    most = megabytes * 1024 * 1024
    form = DocumentForm()
    began = asyncio.get_running_loop().time()
    chunks = body.chunks()
    reader = FormReader(_in_time(chunks), boundary, most_bytes=most + OVERHEAD + room, most_parts=_MOST_PARTS)
    try:
        with files.document.open("wb") as file:
            async with asyncio.timeout(seconds):
                async for part in reader.parts():
                    if part.name == "file":
                        await _take_document(part, form, file, most)
                    elif part.name == "mappings" and takes_mappings():
                        await _take_mappings(part, form, files.mappings)
                    elif part.name in fields:
                        on_field(part.name, await _take_field(part, form))
                    # Unknown fields are ignored, because a newer client may send them.
    except TimeoutError:
        raise too_slow(min(seconds, asyncio.get_running_loop().time() - began)) from None
    except TooLarge:
        raise too_large(megabytes) from None
    except BadForm as error:
        raise unreadable_form(error) from error
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]
    return form


async def receive_file(body: Body, file: Path, *, most: int, megabytes: int, seconds: float) -> int:
    """Read a body that is one file, within the same limits. Returns its size."""
    began, size, unwritten = asyncio.get_running_loop().time(), 0, bytearray()
    chunks = body.chunks()
    try:
        with file.open("wb") as opened:
            async with asyncio.timeout(seconds):
                async for chunk in _in_time(chunks):
                    size += len(chunk)
                    if size > most:
                        raise too_large(megabytes)
                    unwritten += chunk
                    if len(unwritten) > _BUFFER:
                        await asyncio.to_thread(opened.write, unwritten)
                        unwritten = bytearray()
                opened.write(unwritten)
    except TimeoutError:
        raise too_slow(min(seconds, asyncio.get_running_loop().time() - began)) from None
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]
    return size


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of the body. Raises TimeoutError if they stop or arrive too slowly."""
    loop = asyncio.get_running_loop()
    began, received = loop.time(), 0
    while True:
        earned = began + _HEAD_START + received / _SLOWEST
        try:
            async with asyncio.timeout_at(min(loop.time() + _SILENCE, earned)):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        received += len(chunk)
        yield chunk


async def _take_document(part: Part, form: DocumentForm, file: BinaryIO, most: int) -> None:
    if form.size is not None:
        raise BadForm(msg("gateway.two_files"))
    form.size = 0
    async for written in _written(part, file):
        form.size += written
        if form.size > most:
            raise TooLarge()


async def _take_mappings(part: Part, form: DocumentForm, mappings: Path) -> None:
    if form.has_mappings:
        raise BadForm(msg("gateway.field_twice", name=part.name))
    form.has_mappings = True
    total = 0
    with mappings.open("wb") as file:
        async for written in _written(part, file):
            total += written
            if total > MOST_MAPPINGS_MB * 1024 * 1024:
                raise BadForm(msg("gateway.mappings_too_large", megabytes=MOST_MAPPINGS_MB))


async def _written(part: Part, file: BinaryIO) -> AsyncIterator[int]:
    """Write a part to disk. Yields the size of each chunk before it is written, so that the caller can stop."""
    unwritten = bytearray()
    async for chunk in part.chunks():
        yield len(chunk)
        unwritten += chunk
        if len(unwritten) > _BUFFER:
            # This runs in a thread, because a busy disk must not block other requests.
            await asyncio.to_thread(file.write, unwritten)
            unwritten = bytearray()
    await asyncio.to_thread(file.write, unwritten)


async def _take_field(part: Part, form: DocumentForm) -> str:
    if part.name in form.fields:
        raise BadForm(msg("gateway.field_twice", name=part.name))
    value = (await part.text(_LONGEST_FIELD)).strip()
    form.fields[part.name] = value
    return value
