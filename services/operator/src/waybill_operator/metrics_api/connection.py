"""A connection to the metrics API: like those of our other servers, and it knows the client's certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from starlette.types import ASGIApp, Receive, Scope, Send

from waybill.http.timed_protocol import TimedProtocol

_CERTIFICATE = "waybill.certificate"
_MOST_KNOWN, _MOST_UNKNOWN = 200, 32
"""Connections with a client certificate, and without one: strangers must not keep the API server out."""


class MetricsConnection(TimedProtocol):
    unknown: ClassVar[set[MetricsConnection]] = set()

    _certificate: Mapping[str, Any] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Empty without a certificate; verified otherwise, or the handshake would have failed.
        self._certificate = transport.get_extra_info("peercert") or None
        if self._certificate is None:
            self.unknown.add(self)
        if len(self.unknown) > _MOST_UNKNOWN or len(self.connections) > _MOST_KNOWN + _MOST_UNKNOWN:
            transport.abort()
            return
        self.app = _WithCertificate(self.app, self._certificate)

    def connection_lost(self, exc: Exception | None) -> None:
        self.unknown.discard(self)
        super().connection_lost(exc)


class _WithCertificate:
    def __init__(self, app: ASGIApp, certificate: Mapping[str, Any] | None) -> None:
        self._app = app
        self._certificate = certificate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_CERTIFICATE] = self._certificate
        await self._app(scope, receive, send)


def certificate_of(scope: Scope) -> Mapping[str, Any] | None:
    """The verified certificate of whoever sent this request, if there is one."""
    found: Mapping[str, Any] | None = scope.get(_CERTIFICATE)
    return found
