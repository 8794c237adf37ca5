"""The body of a request as it comes in: counted, timed, and got rid of when it is not wanted.

Reading is what makes a client go on sending, so whoever refuses early simply does not read.
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
        """What arrives, as it arrives."""
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
        """Wait until the client hangs up, after all has been read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drain(self, *, seconds: float, most: int) -> None:
        """Read the rest and forget it.

        A connection closed with unread bytes is reset, and the client may then lose the answer that says why. So the
        answer goes out first and the rest is read, as far as that is worth it.
        """
        if not self._begun:
            return  # it waits for our word, and the answer is that word
        with contextlib.suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(seconds):
                async for chunk in self.chunks():
                    most -= len(chunk)
                    if most < 0:
                        return
