"""A span that is recorded. It implements OpenTelemetry's API, so a handler or a library may add to it and start spans
inside it.

A run of a job that fails is exported even if its trace is not sampled. So an unsampled run keeps the few spans inside
it until it has ended, and drops them if it succeeded. The gateway does the same with its part of a run.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from datetime import datetime
from types import TracebackType
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Event
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from waybill.telemetry import spans
from waybill.telemetry.spans import Attributes, Link, Moment
from waybill.telemetry.trace_context import LONGEST_VALUE, job_attributes
from waybill.telemetry.trace_ids import SAMPLED, parse

_RUN = contexts.create_key("waybill-run")
_MOST_KEPT = 64
"""How many spans an unsampled run keeps for the case that it fails."""
_MOST_PARTS = 128
"""Attributes, events and links of a span, as in the SDK: a handler may add one for each row of a table, and a collector
refuses a batch that is too large as a whole."""
_UNSET = Status(StatusCode.UNSET)


class RecordedSpan(spans.Span, trace.Span):
    """A span at work. Entered, it is the current one."""

    __slots__ = (
        "_any_failure",
        "_emit",
        "_entered",
        "_kept",
        "_where",
        "attributes",
        "begun",
        "context",
        "ended",
        "events",
        "kind",
        "links",
        "name",
        "parent",
        "status",
    )

    def __init__(
        self,
        emit: Callable[[RecordedSpan], None],
        name: str,
        kind: trace.SpanKind,
        where: SpanContext,
        parent: SpanContext | None,
        attributes: dict[str, Any],
        links: list[trace.Link],
        context: Context,
        begun: int,
    ) -> None:
        self.name = name
        self.kind = kind
        self.parent = parent
        self.attributes = attributes
        self.links = links
        self.events: list[Event] = []
        self.status = _UNSET
        self.begun = begun
        self.ended = 0
        self._where = where
        self._emit = emit
        self.context = context
        """What was current when it began."""
        self._entered: Token[Context] | None = None
        self._kept: list[Callable[[], RecordedSpan]] | None = None
        self._any_failure = False

    @property
    def sampled(self) -> bool:
        return self._where.trace_flags.sampled

    def keep_inside(self, *, any_failure: bool = False) -> None:
        if not self.sampled:
            self._kept, self._any_failure = [], any_failure

    def set(self, attributes: Attributes) -> None:
        for name, value in attributes.items():
            self.set_attribute(name, value)

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        self.add_event(name, attributes)

    def fail(self, code: str) -> None:
        self.attributes["error.type"] = code
        self.status = Status(StatusCode.ERROR, code)

    def disown(self) -> None:
        old = self._where
        self._where = SpanContext(old.trace_id, new_span_id(), False, old.trace_flags, old.trace_state)

    def beside(
        self,
        name: str,
        *,
        begun: Moment,
        ended: Moment,
        attributes: Attributes | None = None,
        links: Sequence[Link] = (),
    ) -> None:
        def make() -> RecordedSpan:
            where = self._where
            span = RecordedSpan(
                self._emit,
                name,
                trace.SpanKind.INTERNAL,
                SpanContext(where.trace_id, new_span_id(), False, where.trace_flags, where.trace_state),
                self.parent,
                {**job_attributes(self.context), **(attributes or {})},
                made_links(links),
                self.context,
                nanoseconds(begun),
            )
            span.ended = max(nanoseconds(ended), span.begun)
            return span

        if self.sampled:
            self._emit(make())
        elif self._kept is not None:
            self._kept.append(make)  # made only if it is needed

    def __enter__(self) -> RecordedSpan:
        context = trace.set_span_in_context(self, self.context)
        if self._kept is not None:
            context = contexts.set_value(_RUN, self._kept, context)
        self._entered = contexts.attach(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            self.event("cancelled")  # somebody stopped the work; the work did not fail
        elif error is not None and not isinstance(error, GeneratorExit):
            self.fail(spans.error_type(error))
        if self._entered is not None:
            contexts.detach(self._entered)
            self._entered = None
        self.end()

    def end(self, end_time: int | None = None) -> None:
        if self.ended:
            return
        self.ended = max(time.time_ns() if end_time is None else end_time, self.begun)
        if self.sampled:
            self._emit(self)
        elif self._kept is not None:
            self._export_if_failed(self._kept)
        else:
            kept = contexts.get_value(_RUN, self.context)
            if isinstance(kept, list) and len(kept) < _MOST_KEPT:
                kept.append(lambda: self)

    def _export_if_failed(self, kept: list[Callable[[], RecordedSpan]]) -> None:
        if self._failed or self._any_failure:
            made = [*(make() for make in kept), self]
            if self._failed or any(span._failed for span in made):
                for span in made:
                    self._emit(span)
        kept.clear()

    @property
    def _failed(self) -> bool:
        return self.status.status_code is StatusCode.ERROR

    # The rest is OpenTelemetry's API, for handlers and libraries that use it.

    def get_span_context(self) -> SpanContext:
        return self._where

    def is_recording(self) -> bool:
        return not self.ended

    def set_attribute(self, key: str, value: Any) -> None:
        if len(self.attributes) < _MOST_PARTS or key in self.attributes:
            self.attributes[key] = _short(value)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.set(attributes)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        if len(self.events) < _MOST_PARTS:
            facts = {key: _short(value) for key, value in (attributes or {}).items()}
            self.events.append(Event(name, facts, timestamp or time.time_ns()))

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        if len(self.links) < _MOST_PARTS:
            self.links.append(trace.Link(context, attributes))

    def update_name(self, name: str) -> None:
        self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:  # noqa: ARG002
        # Not the description, which may be an exception's message.
        self.status = Status(status.status_code if isinstance(status, Status) else status)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Any = None,  # noqa: ARG002
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: ARG002
    ) -> None:
        self.add_event("exception", {"exception.type": spans.error_type(exception)}, timestamp)


def made_links(links: Sequence[Link]) -> list[trace.Link]:
    """Links as OpenTelemetry has them. One whose `traceparent` cannot be read is left out."""
    return [made for link in links if (made := _made(link))]


def _made(link: Link) -> trace.Link | None:
    found = parse(link.traceparent)
    if found is None:
        return None
    flags = TraceFlags(SAMPLED if found.sampled else 0)
    where = SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=flags)
    return trace.Link(where, {"waybill.link": link.why})


def new_span_id() -> int:
    return random.getrandbits(64) or 1


def _short(value: Any) -> Any:
    return value[:LONGEST_VALUE] if isinstance(value, str) else value


def nanoseconds(moment: Moment) -> int:
    if isinstance(moment, datetime):
        return int(moment.timestamp() * 1_000_000) * 1000
    return moment
