"""What all paths for documents share: a request is admitted, received, worked on by a parser and answered.

Each step may raise a refusal (`refusals`), which becomes a problem document. `document_endpoint` is for one document
with one answer, `pack_endpoint` for many in one answer that is made in parts.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from waybill.http.multipart import OVERHEAD
from waybill_documents.faults import FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_gateway import pool as pools
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.callers import is_proven
from waybill_gateway.doorkeeper import Doorkeeper
from waybill_gateway.exchange import Exchange, seconds_since
from waybill_gateway.refusals import Refusal
from waybill_gateway.request_span import request_span
from waybill_gateway.responses import send_problem
from waybill_gateway.settings import GatewaySettings
from waybill_gateway.spool import Spool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Endpoint(ABC):
    """An ASGI application, because it must read the body before a framework does."""

    settings: GatewaySettings
    pool: pools.Pool
    spool: Spool
    doorkeeper: Doorkeeper

    @property
    def megabytes(self) -> int:
        """The largest file that it takes."""
        return self.settings.max_upload_mb

    @abstractmethod
    async def take(self, headers: Headers, body: Body, exchange: Exchange, send: Send) -> None:
        """Answer a request, or raise a refusal before anything of the answer was sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        body = Body(receive, waits_for_continue=headers.get("expect", "").lower() == "100-continue")
        exchange = Exchange(proven=is_proven(scope))
        with request_span(scope, headers) as span:
            try:
                if "x-job-id" in headers:
                    exchange.identify(headers["x-job-id"])
                await self.take(headers, body, exchange, send)
            except ClientDisconnect:
                log.info("client_gone", **exchange.facts)
                span.event("client gone")
            except Refusal as refusal:
                exchange.status = refusal.status
                if refusal.status >= 500:
                    span.fail(refusal.code)
                log.info("refused", status=refusal.status, code=refusal.code.value, key=refusal.key, **exchange.facts)
                problem = refusal.problem(exchange.headers(), exchange.members())
                await send_problem(problem, body, send, most=self.megabytes * 1024 * 1024)
            span.set(exchange.attributes())

    def check_length(self, headers: Headers, *, room: int = 0) -> None:
        """Refuse a body that is too large before it is sent. It may have `room` bytes beside the file."""
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self.megabytes * 1024 * 1024 + OVERHEAD + room:
            raise refusals.too_large(self.megabytes)

    async def while_client_waits(self, work: Coroutine[Any, Any, T], body: Body) -> T:
        """Do the work as long as the client waits for it. Call this after the whole body was read."""
        working = asyncio.create_task(work)
        hanging_up = asyncio.create_task(body.client_gone())
        try:
            await asyncio.wait((working, hanging_up), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ClientDisconnect
            return await working
        finally:
            # If nobody waits for the result, the parser is killed.
            for waiting in (working, hanging_up):
                waiting.cancel()
            await asyncio.wait((working, hanging_up))

    async def parse(self, call: Mapping[str, Any], answer: Path, exchange: Exchange) -> Mapping[str, Any]:
        """Have a parser do what the call says. Returns its note about the answer."""
        began = time.monotonic()
        try:
            note, waited = await self.pool.run(
                call,
                answer,
                seconds=self.settings.gateway_parse_timeout,
                wait=self.settings.gateway_queue_timeout,
            )
        except pools.TookTooLong:
            message = DocumentMessage("parser.took_too_long", seconds=f"{self.settings.gateway_parse_timeout:g}")
            raise refusals.document_fault(FaultCode.TOOK_TOO_LONG, message) from None
        except pools.TooMuchMemory:
            message = DocumentMessage("parser.too_much_memory", megabytes=self.settings.gateway_memory_mb)
            raise refusals.document_fault(FaultCode.TOO_MUCH_MEMORY, message) from None
        except pools.Crashed:
            raise refusals.document_fault(FaultCode.PARSER_CRASHED, DocumentMessage("parser.crashed")) from None
        except pools.Killed:
            raise refusals.parser_killed(self.doorkeeper.retry_after()) from None
        except pools.Unavailable as error:
            log.warning("no_parser", reason=str(error))
            raise refusals.saturated(self.doorkeeper.retry_after()) from None
        except pools.OutOfSpace:
            log.error("spool_full")
            raise refusals.disk_full() from None
        except pools.Broken as error:
            log.error("conversion_broken", exception=error.traceback, **exchange.facts)
            raise refusals.broken() from None
        self.doorkeeper.took(time.monotonic() - began - waited)
        exchange.worked(waited, seconds_since(began + waited))
        return note
