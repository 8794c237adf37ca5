"""What `POST /unpack` and `POST /extract` share: many documents in one answer, a pack, that is made in parts.

A parser makes a part in bounded time and writes it to disk. It is sent and removed before the next one is made, so that
neither memory nor disk grows with the answer. An item that kills its parser is repeated alone, and if that parser dies
too, it is answered with a problem of its own. Once the answer has begun, any other failure breaks the connection off:
a pack without an end is no answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.types import Send

from waybill.errors import Code
from waybill.files import FileType
from waybill.files.packs import MEDIA_TYPE
from waybill.http import Problem
from waybill.messages import msg
from waybill.telemetry.metrics import GATEWAY_DOCUMENTS
from waybill_documents.faults import FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.bookmark import Bookmark
from waybill_gateway.content_negotiation import Accept
from waybill_gateway.endpoint import Endpoint
from waybill_gateway.exchange import Exchange, seconds_since
from waybill_gateway.file_signature import KINDS
from waybill_gateway.refusals import FatalDocument, Refusal
from waybill_gateway.responses import PROBLEM, StreamedAnswer, send_file
from waybill_gateway.spool import RequestFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_MB = 1024 * 1024
_TYPES = frozenset(each.value for each in FileType)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Which part of the answer is made next."""

    start: Any = None
    """What the parser said about where it was; None for the first part. The service does not look into it."""
    alone: bool = False
    """Whether to work on one item only: the one that has killed a parser."""
    blame: FatalDocument | None = None
    """Why the first item is not tried again."""
    give_up: bool = False
    """Whether the answer ends here, with `blame` as the reason."""

    def call(self) -> dict[str, Any]:
        blame = None
        if self.blame is not None:
            says = self.blame.message
            fault = self.blame.fault.value
            blame = {"fault": fault, "key": says.key, "params": says.params, "detail": says.english}
        return {"start": self.start, "alone": self.alone, "blame": blame, "give_up": self.give_up}


@dataclass(frozen=True, slots=True)
class Made:
    """A part that has been made."""

    size: int
    following: AnswerPart | None
    """None if it was the last."""


@dataclass(frozen=True, slots=True)
class PackEndpoint(Endpoint):
    """Takes many documents from one of our services."""

    @property
    def part_bytes(self) -> int:
        """A parser ends a part when it has this many bytes. The largest item comes on top."""
        return min(64 * _MB, self.settings.gateway_max_result_mb * _MB // 4)

    @property
    def part_seconds(self) -> float:
        """A parser ends a part after this many seconds, long before it would be taken for hanging."""
        return min(15.0, self.settings.gateway_parse_timeout / 4)

    @property
    def most_deaths(self) -> int | None:
        """How many items may kill their parsers before the whole is given up."""
        return None

    @abstractmethod
    async def receive(self, headers: Headers, body: Body, files: RequestFiles, exchange: Exchange) -> dict[str, Any]:
        """Receive the documents. Returns the parser's task."""

    async def take(self, headers: Headers, body: Body, exchange: Exchange, send: Send) -> None:
        if not exchange.proven:
            raise refusals.unproven()
        if not Accept(headers.getlist("accept")).quality(MEDIA_TYPE):
            raise refusals.not_acceptable(msg("gateway.accept", media_types=[MEDIA_TYPE]))
        self.check_length(headers)
        with self.doorkeeper.enter() as visit, self.spool.files() as files:
            streamed = StreamedAnswer(send, {})
            try:
                task = await self.receive(headers, body, files, exchange)
                exchange.facts["upload_seconds"] = seconds_since(exchange.began)
                streamed = StreamedAnswer(send, {"Content-Type": MEDIA_TYPE, **exchange.headers()})
                call = {
                    **task,
                    "source": str(files.document),
                    "bookmark": str(files.bookmark),
                    "scratch": str(files.scratch),
                    "problem": Problem.members(422, Code.PARSE_ERROR, more=exchange.members()),
                }
                with self.doorkeeper.parse(visit):
                    await self.while_client_waits(self._answer(call, files, exchange, streamed, send), body)
            except (OSError, Refusal) as error:
                failure = error if isinstance(error, Refusal) else refusals.not_stored(error)
                if isinstance(error, OSError):
                    log.error("spool_failed", error=error.strerror)
                if not streamed.begun:
                    raise failure from error
                # Returning without the end of the answer makes the server close the connection.
                log.warning("answer_broken_off", code=failure.code.value, key=failure.key, **exchange.facts)

    async def _answer(
        self, call: Mapping[str, Any], files: RequestFiles, exchange: Exchange, streamed: StreamedAnswer, send: Send
    ) -> None:
        """Make and send part after part."""
        part: AnswerPart | None = AnswerPart()
        parts = deaths = 0
        while part is not None:
            made = await self._made(part, call, files, exchange, streamed)
            if made is None:  # the whole is at fault, and the parser has said why
                exchange.status = 422
                files.drop_received()
                self._log(exchange, parts, streamed)
                await send_file(files.answer, 422, {"Content-Type": PROBLEM, **exchange.headers()}, send)
                return
            parts += 1
            await streamed.send_part(files.answer, made.size)
            part = made.following
            if part is not None and part.blame is not None:
                deaths += 1
                if self.most_deaths is not None and deaths > self.most_deaths:
                    says = DocumentMessage("archive.too_many_deaths", times=deaths)
                    part = replace(part, blame=refusals.document_fault(FaultCode.PARSER_CRASHED, says), give_up=True)
        exchange.status = 200
        files.drop_received()
        self._log(exchange, parts, streamed)
        await streamed.end()

    async def _made(
        self,
        part: AnswerPart,
        call: Mapping[str, Any],
        files: RequestFiles,
        exchange: Exchange,
        streamed: StreamedAnswer,
    ) -> Made | None:
        """Have a part made. None if there is a problem document instead, about the whole."""
        files.bookmark.unlink(missing_ok=True)
        try:
            note = await self.parse({**call, **part.call()}, files.answer, exchange)
        except FatalDocument as fault:
            return _after_death(part, fault, files)
        if note["status"] == 400:
            raise refusals.not_a_pack(str(note["reason"]))
        if note["status"] != 200:
            if streamed.begun:
                raise refusals.broken()
            return None
        _count(note)
        made = Made(files.answer.stat().st_size, AnswerPart(note["next"]) if note["next"] is not None else None)
        if made.following is not None and not made.size:
            raise refusals.broken()  # it would never end
        return made

    def _log(self, exchange: Exchange, parts: int, streamed: StreamedAnswer) -> None:
        log.info("processed", status=exchange.status, parts=parts, sent=streamed.sent, **exchange.facts)


def _after_death(part: AnswerPart, fault: FatalDocument, files: RequestFiles) -> Made:
    """What is left of a part whose parser died, and what becomes of the item that it was at."""
    noted = Bookmark.read(files.bookmark)
    if noted is None or not files.answer.exists() or files.answer.stat().st_size < noted.size:
        raise fault  # it was at no item
    if part.blame is not None and not noted.size:
        raise fault  # it died although it did not touch the item that killed the one before
    log.warning("item_killed_parser", fault=fault.fault.value, first=not noted.size)
    if noted.size:
        # Others came before it, whose traces may have killed the parser, and who took a part of its time.
        return Made(noted.size, AnswerPart(noted.start, alone=True))
    return Made(0, AnswerPart(noted.start, blame=fault))


def _count(note: Mapping[str, Any]) -> None:
    """Count the documents that a parser says it has read."""
    for name, count in note.get("kinds", {}).items():
        kind = KINDS.get(FileType(name)) if name in _TYPES else None
        GATEWAY_DOCUMENTS.labels(kind or "other").inc(count)
