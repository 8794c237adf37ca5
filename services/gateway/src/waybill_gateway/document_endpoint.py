"""What `POST /process`, `/render` and `/attachment` share: a form with a document, and one answer.

The form is received, a parser works on the document, and the answer is sent. The routes define the fields of the form
and the parser's task.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.types import Send

from waybill.errors import Code
from waybill.http import Problem
from waybill.http.multipart import BadForm, boundary_of
from waybill.messages import msg
from waybill.telemetry import spans
from waybill.telemetry.metrics import GATEWAY_DOCUMENTS
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.endpoint import Endpoint
from waybill_gateway.exchange import Exchange, seconds_since
from waybill_gateway.file_signature import KINDS, sniff
from waybill_gateway.pool.stage_times import stage_times
from waybill_gateway.responses import PROBLEM, send_file
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import MOST_MAPPINGS_MB, DocumentForm, receive_form

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DocumentTask:
    """What a parser shall do, and the media type of its result."""

    call: Mapping[str, Any]
    media_type: str


@dataclass(frozen=True, slots=True)
class DocumentEndpoint(Endpoint):
    """Takes one document."""

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

    async def take(self, headers: Headers, body: Body, exchange: Exchange, send: Send) -> None:
        accept = Accept(headers.getlist("accept"))
        self.check_accept(accept)
        try:
            boundary = boundary_of(headers.get("content-type"))
        except BadForm as error:
            raise refusals.unreadable_form(error) from error
        self.check_length(headers, room=_room(exchange))
        with self.doorkeeper.enter() as visit, self.spool.files() as files:
            try:
                task = await self._receive(body, boundary, accept, files, exchange)
                with self.doorkeeper.parse(visit):
                    call = {
                        **task.call,
                        "source": str(files.document),
                        "problem": Problem.members(422, Code.PARSE_ERROR, more=exchange.members()),
                    }
                    note = await self.while_client_waits(self.parse(call, files.answer, exchange), body)
            except OSError as error:
                log.error("spool_failed", error=error.strerror)
                raise refusals.not_stored(error) from error
            files.drop_received()
            await self._answer(note, task, files.answer, exchange, send)

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
                megabytes=self.megabytes,
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
        exchange.facts["upload_seconds"] = seconds_since(exchange.began)
        GATEWAY_DOCUMENTS.labels(kind or "other").inc()
        if kind is None:
            raise refusals.unread(found)
        return self.task(form, files, kind, accept, exchange)

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
        media_type = task.media_type if status == 200 else PROBLEM
        await send_file(answer, status, {"Content-Type": media_type, **exchange.headers()}, send)


def _room(exchange: Exchange) -> int:
    """Bytes for mappings beside the document, which only our services may send."""
    return MOST_MAPPINGS_MB * 1024 * 1024 if exchange.proven else 0
