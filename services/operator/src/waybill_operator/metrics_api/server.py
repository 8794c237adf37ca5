"""Serves the metrics API over TLS, with a certificate and a trust that may change at any time.

A context cannot unlearn an authority, so each change makes a new one, and a new server on the same listening socket:
nobody is refused meanwhile, and connections that are open go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Never

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from waybill import background_tasks
from waybill_operator.metrics_api.certificate import ServingCertificate
from waybill_operator.metrics_api.connection import MetricsConnection
from waybill_operator.metrics_api.proxy_trust import TrustSource

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LOOK_EVERY = 10.0
_HANDSHAKE_WITHIN = 5.0
_IDLE = 75
_AT_ONCE = 100
"""Requests; further ones get a 503."""
_LEAVE_WITHIN = 2.0


class MetricsServer:
    def __init__(
        self,
        app: ASGIApp,
        certificate: ServingCertificate,
        trust: TrustSource,
        listener: socket.socket,
        *,
        look_every: float = _LOOK_EVERY,
    ) -> None:
        self._certificate = certificate
        self._trust = trust
        self._listener = listener
        self._look_every = look_every
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._config = uvicorn.Config(
            app,
            http=MetricsConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=_AT_ONCE,
            timeout_keep_alive=_IDLE,
        )
        self._config.load()

    @property
    def trouble(self) -> str | None:
        """Why nobody is answered; None if everybody is."""
        if self._server is None:
            return f"the certificate cannot be used: {self._certificate.trouble}"
        return None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve while the block runs, as soon as there is a certificate."""
        self._trust.on_change(self._changed.set)
        async with background_tasks.running(self._follow(), "metrics api"):
            try:
                yield
            finally:
                await self._leave()

    async def _follow(self) -> Never:
        said: str | None = None
        while True:
            self._changed.clear()
            if (context := self._certificate.new_context(self._trust.current)) is not None:
                await self._serve(context)
            if (trouble := self._certificate.trouble) != said:
                if trouble is not None:
                    log.error("certificate_not_usable", error=trouble, setting="WAYBILL_OPERATOR_TLS_DIR")
                said = trouble
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_every):
                    await self._changed.wait()

    async def _serve(self, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        earlier = self._server
        self._server = await loop.create_server(
            lambda: MetricsConnection(config=self._config, server_state=self._state, app_state={}),
            sock=self._listener.dup(),
            ssl=context,
            ssl_handshake_timeout=_HANDSHAKE_WITHIN,
            ssl_shutdown_timeout=_LEAVE_WITHIN,
        )
        if earlier is not None:
            await _retire(earlier)
        log.info(
            "metrics_api_served",
            port=self._listener.getsockname()[1],
            front_proxy_known=self._trust.current is not None,
        )

    async def _leave(self) -> None:
        """Stop listening, let requests end, and hang up."""
        if self._server is not None:
            self._server.close()
        self._listener.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        # Requests take milliseconds; what is left after them are clients that read slowly.
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=_LEAVE_WITHIN)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()


async def _retire(server: asyncio.Server) -> None:
    """Stop accepting, and close once what was accepted has become a connection.

    A server that closes in between forgets the connection with its socket open, and the client waits for ever.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)  # an accepted socket becomes a connection in the first step of a task that exists by now
    server.close()
