"""Sends a response: a file in pieces, or a problem document to a client that may still be sending."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import ClientDisconnect
from starlette.types import Message, Send

from waybill.http import Problem
from waybill_gateway.body import Body

PROBLEM = "application/problem+json"
_PIECE = 256 * 1024
_PATIENCE = 60.0
"""Seconds that a client may take to read a response."""
_LINGER = 5.0
"""Seconds for which we read and discard the rest of a refused document."""


async def send_file(file: Path, status: int, headers: Mapping[str, str], send: Send) -> None:
    """Send a file piece by piece, so that it is never in memory as a whole. It is deleted before the first piece."""
    with file.open("rb") as opened:
        os.unlink(file)  # noqa: PTH108 - it stays readable while it is open
        size = opened.seek(0, os.SEEK_END)
        opened.seek(0)
        try:
            async with asyncio.timeout(_PATIENCE):
                await send(_start(status, {**headers, "Content-Length": str(size)}))
                while piece := await asyncio.to_thread(opened.read, _PIECE):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            raise ClientDisconnect from None  # it reads too slowly


class StreamedAnswer:
    """An answer that is sent in parts while the rest is still being made."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send = send
        self._headers = headers
        self.begun = False
        """Whether the status has been sent, so that a failure can only break the answer off."""
        self.sent = 0
        """Bytes."""

    async def send_part(self, file: Path, size: int) -> None:
        """Send the first `size` bytes of a file, which is deleted before the first piece."""
        with file.open("rb") as opened:
            os.unlink(file)  # noqa: PTH108 - it stays readable while it is open
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._begin()
                    while size and (piece := await asyncio.to_thread(opened.read, min(size, _PIECE))):
                        size -= len(piece)
                        await self._piece(piece)
            except TimeoutError:
                raise ClientDisconnect from None  # it reads too slowly

    async def end(self, last: bytes = b"") -> None:
        """Send the last bytes."""
        await self._begin()
        self.sent += len(last)
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            await self._send(_start(200, self._headers))

    async def _piece(self, piece: bytes) -> None:
        self.sent += len(piece)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})


async def send_problem(problem: Problem, body: Body, send: Send, *, most: int) -> None:
    """Respond at once, even in the middle of an upload. Then read on for a moment and close the connection."""
    headers = {name.decode(): value.decode() for name, value in problem.raw_headers}
    await send(_start(problem.status_code, {**headers, "Connection": "close"}))
    await send({"type": "http.response.body", "body": bytes(problem.body), "more_body": True})
    await body.drain(seconds=_LINGER, most=most)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _start(status: int, headers: Mapping[str, str]) -> Message:
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": encoded}
