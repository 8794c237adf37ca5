"""What `POST /process` and `POST /render` share: a document's way through the gateway, step by step.

A request is admitted, its form is received, a parser works on the document, and the answer is sent. Each step may raise
a refusal (`refusals`), which becomes a problem document. `process_route` and `render_route` define the fields of the
form and the parser's task.
"""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from waybill.errors import Code
from waybill.http import Problem
from waybill.http.multipart import OVERHEAD, BadForm, boundary_of
from waybill.messages import msg
from waybill.telemetry import spans
from waybill.telemetry.metrics import GATEWAY_DOCUMENTS
from waybill_documents.faults import FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_gateway import pool as pools
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.callers import is_proven
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.doorkeeper import Doorkeeper
from waybill_gateway.file_signature import KINDS, sniff
from waybill_gateway.pool.stage_times import stage_times
from waybill_gateway.refusals import Refusal
from waybill_gateway.request_span import request_span
from waybill_gateway.responses import send_file, send_problem
from waybill_gateway.settings import GatewaySettings
from waybill_gateway.spool import RequestFiles, Spool
from waybill_gateway.upload_form import MOST_MAPPINGS_MB, DocumentForm, receive_form

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_JOB_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:-]{0,99}")
_PROBLEM = "application/problem+json"


@dataclass(slots=True)
class Exchange:
    """What we know about a request so far, for its response and its log line."""

    proven: bool = False
    """Whether the caller is one of our services."""
    began: float = field(default_factory=time.monotonic)
    job_id: str | None = None
    mapping: str | None = None
    """As it was asked for."""
    used_mapping: str | None = None
    """The one that the document was converted with; another one if the document chose it."""
    status: int | None = None
    """Of the answer; None if there is none, because the client has gone."""
    facts: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)

    def identify(self, job_id: str) -> None:
        """Set the job's id from a header or a field. Both may name it if they agree."""
        if not _JOB_ID.fullmatch(job_id):
            raise refusals.bad_form(msg("gateway.job_id"))
        if self.job_id not in (None, job_id):
            raise refusals.bad_form(msg("gateway.two_job_ids"))
        self.job_id = job_id
        bind_contextvars(job_id=job_id)

    def headers(self) -> dict[str, str]:
        known = {"Vary": "Accept"}
        if self.job_id is not None:
            known["X-Job-Id"] = self.job_id
        if self.used_mapping is not None:
            known["X-Mapping"] = self.used_mapping
        if self.stages:
            known["X-Stage"] = ", ".join(f"{name};dur={took:.1f}" for name, took in self.stages.items())
        return known

    def attributes(self) -> dict[str, str | int]:
        """What this request adds to its span. Nothing of it was chosen by whoever wrote the document."""
        known = {f"waybill.document.{name}": self.facts.get(name) for name in ("bytes", "kind", "mapping", "page")}
        known["http.response.status_code"] = self.status
        return {name: value for name, value in known.items() if value is not None}

    def members(self) -> dict[str, str]:
        """What this request adds to a problem document."""
        return {} if self.job_id is None else {"job_id": self.job_id}


@dataclass(frozen=True, slots=True)
class DocumentTask:
    """What a parser shall do, and the media type of its result."""

    call: Mapping[str, Any]
    media_type: str


@dataclass(frozen=True, slots=True)
class Endpoint(ABC):
    """An ASGI application, because it must read the body before a framework does."""

    settings: GatewaySettings
    pool: pools.Pool
    spool: Spool
    doorkeeper: Doorkeeper

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """The fields of its form, apart from `file` and `job_id`."""

    @abstractmethod
    def check_accept(self, accept: Accept) -> None:
        """Refuse a request that cannot be answered, before its document is sent."""

    @abstractmethod
    def check_field(self, name: str, value: str, exchange: Exchange) -> None:
        """Refuse an invalid field as soon as it arrives."""

    @abstractmethod
    def takes_mappings(self, exchange: Exchange) -> bool:
        """Whether mappings that come with the document are used. May refuse them."""

    @abstractmethod
    def task(
        self, form: DocumentForm, files: RequestFiles, kind: Kind, accept: Accept, exchange: Exchange
    ) -> DocumentTask:
        """The parser's task for a document that has arrived."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        body = Body(receive, waits_for_continue=headers.get("expect", "").lower() == "100-continue")
        exchange = Exchange(proven=is_proven(scope))
        with request_span(scope, headers) as span:
            try:
                await self._take(headers, body, exchange, send)
            except ClientDisconnect:
                log.info("client_gone", **exchange.facts)
                span.event("client gone")
            except Refusal as refusal:
                exchange.status = refusal.status
                if refusal.status >= 500:
                    span.fail(refusal.code)
                log.info("refused", status=refusal.status, code=refusal.code.value, key=refusal.key, **exchange.facts)
                problem = refusal.problem(exchange.headers(), exchange.members())
                await send_problem(problem, body, send, most=self.settings.max_upload_mb * 1024 * 1024)
            span.set(exchange.attributes())

    async def _take(self, headers: Headers, body: Body, exchange: Exchange, send: Send) -> None:
        if "x-job-id" in headers:
            exchange.identify(headers["x-job-id"])
        accept = Accept(headers.getlist("accept"))
        self.check_accept(accept)
        try:
            boundary = boundary_of(headers.get("content-type"))
        except BadForm as error:
            raise refusals.unreadable_form(error) from error
        self._check_length(headers, exchange)
        with self.doorkeeper.enter() as visit, self.spool.files() as files:
            try:
                task = await self._receive(body, boundary, accept, files, exchange)
                with self.doorkeeper.parse(visit):
                    note = await self._done(task, files, body, exchange)
            except OSError as error:
                log.error("spool_failed", error=error.strerror)
                raise refusals.not_stored(error) from error
            files.drop_received()
            await self._answer(note, task, files.answer, exchange, send)

    def _check_length(self, headers: Headers, exchange: Exchange) -> None:
        length = headers.get("content-length", "")
        most = self.settings.max_upload_mb * 1024 * 1024 + OVERHEAD + _room(exchange)
        if length.isdigit() and int(length) > most:
            raise refusals.too_large(self.settings.max_upload_mb)

    async def _receive(
        self, body: Body, boundary: bytes, accept: Accept, files: RequestFiles, exchange: Exchange
    ) -> DocumentTask:
        """Receive the form and decide what to do with the document."""

        def on_field(name: str, value: str) -> None:
            if name == "job_id":
                if value:
                    exchange.identify(value)
            else:
                self.check_field(name, value, exchange)

        with spans.span("receive document"):
            form = await receive_form(
                body,
                boundary,
                files,
                fields=("job_id", *self.fields),
                megabytes=self.settings.max_upload_mb,
                seconds=self.settings.gateway_upload_timeout,
                on_field=on_field,
                takes_mappings=lambda: self.takes_mappings(exchange),
                room=_room(exchange),
            )
        if form.size is None:
            raise refusals.bad_form(msg("gateway.no_file"))
        found = sniff(files.document)
        kind = KINDS.get(found)
        exchange.facts |= {"bytes": form.size, "kind": found.value}
        exchange.facts["upload_seconds"] = _seconds_since(exchange.began)
        GATEWAY_DOCUMENTS.labels(kind or "other").inc()
        if kind is None:
            raise refusals.unread(found)
        return self.task(form, files, kind, accept, exchange)

    async def _done(self, task: DocumentTask, files: RequestFiles, body: Body, exchange: Exchange) -> Mapping[str, Any]:
        """Have the document parsed, as long as the client waits for it."""
        call = {
            **task.call,
            "source": str(files.document),
            "problem": Problem.members(422, Code.PARSE_ERROR, more=exchange.members()),
        }
        parsing = asyncio.create_task(self._parse(call, files.answer, exchange))
        hanging_up = asyncio.create_task(body.client_gone())
        try:
            await asyncio.wait((parsing, hanging_up), return_when=asyncio.FIRST_COMPLETED)
            if not parsing.done():
                raise ClientDisconnect
            return await parsing
        finally:
            # If nobody waits for the result, the parser is killed.
            for waiting in (parsing, hanging_up):
                waiting.cancel()
            await asyncio.wait((parsing, hanging_up))

    async def _parse(self, call: Mapping[str, Any], answer: Path, exchange: Exchange) -> Mapping[str, Any]:
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
        exchange.facts |= {"wait_seconds": round(waited, 4), "parse_seconds": _seconds_since(began + waited)}
        return note

    async def _answer(
        self, note: Mapping[str, Any], task: DocumentTask, answer: Path, exchange: Exchange, send: Send
    ) -> None:
        status = exchange.status = note["status"]
        within = exchange.facts["parse_seconds"]
        exchange.stages = {stage.name: stage.seconds * 1000 for stage in stage_times(note, within)}
        exchange.used_mapping = note.get("mapping")
        if status == 400:  # the mapping cannot be used for this
            raise refusals.mapping_unfit(str(note["detail"]), note["key"], note["params"])
        log.info(
            "processed",
            status=status,
            fault=note.get("fault"),
            used_mapping=exchange.used_mapping,
            stages={name: round(took / 1000, 4) for name, took in exchange.stages.items()},
            **exchange.facts,
        )
        media_type = task.media_type if status == 200 else _PROBLEM
        await send_file(answer, status, {"Content-Type": media_type, **exchange.headers()}, send)


def _room(exchange: Exchange) -> int:
    """Bytes for mappings beside the document, which only our services may send."""
    return MOST_MAPPINGS_MB * 1024 * 1024 if exchange.proven else 0


def _seconds_since(moment: float) -> float:
    return round(time.monotonic() - moment, 4)
