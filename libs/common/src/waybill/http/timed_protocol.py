"""uvicorn's HTTP protocol with four additions, for all our servers.

A client must send its headers in time: otherwise half-sent requests would hold connections for ever. When there are too
many connections, those that nobody waits on are closed (`connection_room`). Requests are read strictly
(`strict_connection`). And a request that cannot be read is answered with a problem document that has the headers of
every other answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from waybill.errors import Code
from waybill.http.connection_room import expendable, most_connections
from waybill.http.headers import SAFE_HEADERS
from waybill.http.problems import Problem
from waybill.http.strict_connection import StrictConnection
from waybill.messages import Message, msg

_LINGER = 2.0
"""Seconds for which we read and drop what a refused client still sends. Closing at once could lose the answer."""
_STATUSES = {431: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, 501: HTTPStatus.NOT_IMPLEMENTED}


class TimedProtocol(H11Protocol):
    """A connection whose client must send its headers in time."""

    headers_within: ClassVar[float] = 10.0
    """Seconds in which a client must have sent its headers, once it has connected or begun another request."""

    refusal_headers: ClassVar[Mapping[str, str]] = SAFE_HEADERS
    """Headers of the answer to a request that cannot be read. Nothing behind the protocol sees such a request."""

    most_connections: ClassVar[int] = most_connections()
    """Of one server process."""

    address = ""
    conn: StrictConnection
    _silent_since = 0.0
    _overdue: asyncio.TimerHandle | None = None
    _refused = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictConnection()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._silent_since = self.loop.time()
        self._expect_request()
        if len(self.connections) > self.most_connections:
            everybody = cast("set[TimedProtocol]", self.connections)
            still_open = (one for one in everybody if not one.transport.is_closing())
            for one in expendable(still_open, self.most_connections):
                one._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        # Between two requests, a connection may be idle for as long as uvicorn's own limit says.
        if self._overdue is None and self.conn.their_state is h11.IDLE:
            self._expect_request()
        super().data_received(data)

    @property
    def waits_since(self) -> float | None:
        """Since when the client has had no answer to wait for; None while it has."""
        running: RequestResponseCycle | None = self.cycle
        return self._silent_since if self._refused or running is None or running.response_complete else None

    def on_response_complete(self) -> None:
        self._silent_since = self.loop.time()
        super().on_response_complete()

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE and not self._refused:  # the headers are complete
            self._stop_waiting()

    def eof_received(self) -> None:
        if self._refused:
            self._hang_up()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's sentence says less than ours
        refusal = self.conn.refusal
        status = _STATUSES.get(refusal.error_status_hint if refusal else 400, HTTPStatus.BAD_REQUEST)
        body = json.dumps(Problem.members(status, Code.VALIDATION_ERROR, _explained(refusal))).encode()
        headers = {
            "Content-Type": Problem.media_type,
            "Content-Length": str(len(body)),
            "Connection": "close",
            **self.refusal_headers,
        }
        running: RequestResponseCycle | None = self.cycle  # None before the first request
        if running is not None and not running.response_complete:
            # Whoever works on the request learns that the client is gone, and must not answer into our answer.
            running.disconnected = True
            running.message_event.set()
        try:
            for event in (
                h11.Response(status_code=status, headers=list(headers.items()), reason=status.phrase.encode()),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            self.transport.close()  # a response was sent already
            return
        self._refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._stop_waiting()
        self._overdue = self.loop.call_later(_LINGER, self._hang_up)

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


def _explained(refusal: h11.RemoteProtocolError | None) -> Message:
    """A sentence for the person who wrote the client. It says what is wrong with the bytes, in English."""
    return msg("request.malformed", why=str(refusal) if refusal else "")
