"""Cuts incoming data into pieces large enough to be handled in a thread, and enforces its size limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator

from waybill.errors import TooLarge


async def pieces(data: bytes | AsyncIterable[bytes], size: int, limit: int | None) -> AsyncGenerator[bytes, None]:
    """`data` in pieces of about `size` bytes. Raises TooLarge as soon as there are more than `limit`."""
    waiting: list[bytes] = []
    held = total = 0
    async for chunk in _cut(data, size) if isinstance(data, bytes) else data:
        total += len(chunk)
        if limit is not None and total > limit:
            raise TooLarge(f"This file is larger than {_words(limit)}. Please upload a smaller one.")
        waiting.append(chunk)
        held += len(chunk)
        if held >= size:
            yield waiting[0] if len(waiting) == 1 else b"".join(waiting)
            waiting, held = [], 0
    if held:
        yield b"".join(waiting)


async def _cut(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data if len(data) <= size else data[at : at + size]


def _words(limit: int) -> str:
    for unit, name in ((1024**3, "GB"), (1024**2, "MB"), (1024, "KB")):
        if limit >= unit:
            return f"{limit / unit:.3g} {name}"
    return f"{limit} bytes"
