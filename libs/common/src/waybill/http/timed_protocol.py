"""uvicorn's HTTP protocol with two additions, for all our servers.

A client must send its headers in time: otherwise half-sent requests would hold connections for ever. And a request that
cannot be parsed is answered with a problem document.
"""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from waybill.errors import Code
from waybill.http.problems import Problem


class TimedProtocol(H11Protocol):
    """A connection whose client must send its headers in time."""

    headers_within: ClassVar[float] = 10.0
    """Seconds in which a client must have sent its headers, once it has connected or begun another request."""

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Between two requests, a connection may be idle for as long as uvicorn's own limit says.
        if self._overdue is None and self.conn.their_state is h11.IDLE:
            self._expect_request()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:  # the headers are complete
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        body = json.dumps(Problem.members(400, Code.VALIDATION_ERROR, msg)).encode()
        headers = [
            (b"content-type", Problem.media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        try:
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # a response was sent already, so we can only close the connection
        self.transport.close()

    def _expect_request(self) -> None:
        self._stop_waiting()
        self._overdue = self.loop.call_later(self.headers_within, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
