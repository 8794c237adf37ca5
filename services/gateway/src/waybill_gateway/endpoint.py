"""A document's way through the gateway, from its first byte to its answer's last, whatever is asked of it.

In order: a place, the form, what is wanted, a parsing process, the answer. Each step refuses what it cannot take
(`refusals`), and every refusal is a problem document. `process.py` and `render.py` say what the form holds and what a
parsing process is to do with it.
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
from structlog.contextvars import bind_contextvars, clear_contextvars

from waybill.config import GatewaySettings
from waybill.errors import Code, classify
from waybill.http import Problem
from waybill.http.multipart import OVERHEAD, BadForm, boundary_of
from waybill_documents.faults import FaultCode
from waybill_gateway import pool as pools
from waybill_gateway import refusals
from waybill_gateway.admission import Admission
from waybill_gateway.body import Body
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.file_signature import sniff
from waybill_gateway.refusals import Refusal
from waybill_gateway.responses import send_file, send_problem
from waybill_gateway.spool import Place, Spool
from waybill_gateway.upload_form import Form, receive_form

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_JOB_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:-]{0,99}")
_PROBLEM = "application/problem+json"


@dataclass(slots=True)
class Exchange:
    """What is known of a request so far: what its answer and its line in the log are made from."""

    began: float = field(default_factory=time.monotonic)
    job_id: str | None = None
    mapping: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)

    def identify(self, job_id: str) -> None:
        """Take the job's id from a header or a field; both may name it, if they agree."""
        if not _JOB_ID.fullmatch(job_id):
            raise refusals.bad_form("A job's id has up to 100 letters, digits and the signs . _ : -")
        if self.job_id not in (None, job_id):
            raise refusals.bad_form("The field 'job_id' and the header X-Job-Id name different jobs.")
        self.job_id = job_id
        bind_contextvars(job_id=job_id)

    def headers(self) -> dict[str, str]:
        known = {"Vary": "Accept"}
        if self.job_id is not None:
            known["X-Job-Id"] = self.job_id
        if self.stages:
            known["X-Stage"] = ", ".join(f"{name};dur={took:.1f}" for name, took in self.stages.items())
        return known

    def members(self) -> dict[str, str]:
        """What it adds to a problem document."""
        return {} if self.job_id is None else {"job_id": self.job_id}


@dataclass(frozen=True, slots=True)
class Order:
    """What a parsing process is to do, and what a good answer is then."""

    call: Mapping[str, Any]
    media_type: str


@dataclass(frozen=True, slots=True)
class Endpoint(ABC):
    """An ASGI application of its own: it must see the body before any framework does."""

    settings: GatewaySettings
    pool: pools.Pool
    spool: Spool
    admission: Admission

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """The fields of its form beside `file` and `job_id`."""

    @abstractmethod
    def check_accept(self, accept: Accept) -> None:
        """Refuse who could not be answered, before a document is sent."""

    @abstractmethod
    def check_field(self, name: str, value: str, exchange: Exchange) -> None:
        """Refuse a field that is wrong, as soon as it is there."""

    @abstractmethod
    def order(self, form: Form, kind: Kind, accept: Accept, exchange: Exchange) -> Order:
        """What is wanted of a document that has arrived."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        clear_contextvars()  # of an earlier request on the same connection
        headers = Headers(scope=scope)
        body = Body(receive, waits_for_continue=headers.get("expect", "").lower() == "100-continue")
        exchange = Exchange()
        try:
            await self._take(headers, body, exchange, send)
        except ClientDisconnect:
            log.info("client_gone", **exchange.facts)
        except Refusal as refusal:
            log.info("refused", status=refusal.status, code=refusal.code.value, detail=refusal.detail, **exchange.facts)
            problem = Problem(
                refusal.status,
                refusal.code,
                refusal.detail,
                {**exchange.headers(), **refusal.headers},
                more={**refusal.more, **exchange.members()},
            )
            await send_problem(problem, body, send, most=self.settings.max_upload_mb * 1024 * 1024)

    async def _take(self, headers: Headers, body: Body, exchange: Exchange, send: Send) -> None:
        if "x-job-id" in headers:
            exchange.identify(headers["x-job-id"])
        accept = Accept(headers.getlist("accept"))
        self.check_accept(accept)
        try:
            boundary = boundary_of(headers.get("content-type"))
        except BadForm as error:
            raise refusals.bad_form(error.message) from error
        self._check_length(headers)
        with self.admission.enter() as visit, self.spool.place() as place:
            try:
                order = await self._receive(body, boundary, accept, place, exchange)
                with self.admission.parse(visit):
                    note = await self._done(order, place, body, exchange)
            except OSError as error:
                log.error("spool_failed", error=str(error))
                raise refusals.no_storage(classify(error).message) from error
            place.drop_document()
            await self._answer(note, order, place.answer, exchange, send)

    def _check_length(self, headers: Headers) -> None:
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self.settings.max_upload_mb * 1024 * 1024 + OVERHEAD:
            raise refusals.too_large(self.settings.max_upload_mb)

    async def _receive(self, body: Body, boundary: bytes, accept: Accept, place: Place, exchange: Exchange) -> Order:
        """Take the form in, and find out what is wanted."""

        def on_field(name: str, value: str) -> None:
            if name == "job_id":
                if value:
                    exchange.identify(value)
            else:
                self.check_field(name, value, exchange)

        form = await receive_form(
            body,
            boundary,
            place.document,
            fields=("job_id", *self.fields),
            megabytes=self.settings.max_upload_mb,
            seconds=self.settings.gateway_upload_timeout,
            on_field=on_field,
        )
        if form.size is None:
            raise refusals.bad_form("The form has no 'file'.")
        kind = sniff(place.document)
        exchange.facts |= {"bytes": form.size, "kind": kind}
        exchange.facts["upload_ms"] = _milliseconds_since(exchange.began)
        if kind is None:
            raise refusals.not_a_document()
        return self.order(form, kind, accept, exchange)

    async def _done(self, order: Order, place: Place, body: Body, exchange: Exchange) -> Mapping[str, Any]:
        """Have the document parsed, for as long as somebody waits for it."""
        call = {
            **order.call,
            "source": str(place.document),
            "problem": Problem.members(422, Code.PARSE_ERROR, more=exchange.members()),
        }
        parsing = asyncio.create_task(self._parse(call, place.answer, exchange))
        hanging_up = asyncio.create_task(body.client_gone())
        try:
            await asyncio.wait((parsing, hanging_up), return_when=asyncio.FIRST_COMPLETED)
            if not parsing.done():
                raise ClientDisconnect
            return await parsing
        finally:
            # A parse that nobody waits for is killed, not left to finish.
            for task in (parsing, hanging_up):
                task.cancel()
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
            limit = f"{self.settings.gateway_parse_timeout:g} s"
            message = f"Reading the document took longer than {limit}."
            raise refusals.document_fault(FaultCode.TOOK_TOO_LONG, message) from None
        except pools.TooMuchMemory:
            message = f"Reading the document needs more than {self.settings.gateway_memory_mb} MB of memory."
            raise refusals.document_fault(FaultCode.TOO_MUCH_MEMORY, message) from None
        except pools.Crashed:
            message = "The document makes the parser crash: it is damaged, or made to do that."
            raise refusals.document_fault(FaultCode.PARSER_CRASHED, message) from None
        except pools.Unavailable as error:
            log.warning("no_parser", reason=str(error))
            raise refusals.saturated(self.admission.retry_after()) from None
        except pools.OutOfSpace:
            log.error("spool_full")
            raise refusals.no_storage("The disk is full.") from None
        except pools.Broken as error:
            log.error("conversion_broken", exception=error.traceback, **exchange.facts)
            raise refusals.broken() from None
        self.admission.took(time.monotonic() - began - waited)
        exchange.facts |= {"wait_ms": round(waited * 1000, 1), "parse_ms": _milliseconds_since(began + waited)}
        return note

    async def _answer(
        self, note: Mapping[str, Any], order: Order, answer: Path, exchange: Exchange, send: Send
    ) -> None:
        status = note["status"]
        exchange.stages = {str(name): float(took) for name, took in (note.get("stages") or {}).items()}
        if status == 400:  # the mapping does not fit what was asked of it
            raise refusals.mapping_unfit(str(note["detail"]))
        log.info(
            "processed",
            status=status,
            fault=note.get("fault"),
            stages={name: round(took, 1) for name, took in exchange.stages.items()},
            **exchange.facts,
        )
        media_type = order.media_type if status == 200 else _PROBLEM
        await send_file(answer, status, {"Content-Type": media_type, **exchange.headers()}, send)


def _milliseconds_since(moment: float) -> float:
    return round((time.monotonic() - moment) * 1000, 1)
