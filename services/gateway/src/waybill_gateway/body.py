"""The body of a request, as a stream of chunks that can also be discarded.

A client only sends as long as we read, so refusing a request early means not reading its body.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect
from starlette.types import Receive


class Body:
    def __init__(self, receive: Receive, *, waits_for_continue: bool) -> None:
        self._receive = receive
        self._begun = not waits_for_continue
        self._ended = False

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks, as they arrive."""
        while not self._ended:
            self._begun = True
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._ended = True
                raise ClientDisconnect
            self._ended = not message.get("more_body", False)
            if chunk := message.get("body", b""):
                yield chunk

    async def client_gone(self) -> None:
        """Wait until the client disconnects. Call this after the whole body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drain(self, *, seconds: float, most: int) -> None:
        """Read the rest and discard it, within limits.

        Closing a connection with unread bytes resets it, and the client may lose the response. So we respond first and
        then read the rest.
        """
        if not self._begun:
            return  # it waits for "100 Continue"; our response answers that
        with contextlib.suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(seconds):
                async for chunk in self.chunks():
                    most -= len(chunk)
                    if most < 0:
                        return
