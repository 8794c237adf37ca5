"""Records spans and hands them to OpenTelemetry's pipeline. Only processes with traces import this module.

The SDK's own span takes 30 us, more than a small job costs altogether. Ours takes less than half of that, and is one
for everybody who uses OpenTelemetry's API: a handler or a library may add to it and start spans inside it.

A run of a job that fails is exported even if its trace is not sampled. So an unsampled run keeps the few spans inside
it until it has ended, and drops them if it succeeded.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags, TraceState

from waybill.telemetry import spans
from waybill.telemetry.spans import JOB_ATTRIBUTES, Attributes, Link, Moment, SpanKind
from waybill.telemetry.trace_ids import RANDOM, SAMPLED, parse, traceparent

_SCOPE = InstrumentationScope("waybill")
_KINDS = {kind.name.lower(): kind for kind in trace.SpanKind}
_JOB = contexts.create_key("waybill-job")
_RUN = contexts.create_key("waybill-run")
_FLAGS = {False: TraceFlags(RANDOM), True: TraceFlags(RANDOM | SAMPLED)}
_MOST_KEPT = 64
"""How many spans an unsampled run keeps for the case that it fails."""
_LONGEST = 512
"""Characters of an attribute."""
_MOST_PARTS = 128
"""Attributes, events and links of a span, as in the SDK: a handler may add one for each row of a table, and a collector
refuses a batch that is too large as a whole."""


class Recorder:
    def __init__(
        self,
        resource: Resource,
        is_sampled: Callable[[int], bool],
        export: Callable[[ReadableSpan], None],
        *,
        runs_apart: bool = False,
    ) -> None:
        self.runs_apart = runs_apart
        """Each run of a job is a trace of its own."""
        self._resource = resource
        self._is_sampled = is_sampled
        self._export = export

    def span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes | None,
        links: Sequence[Link],
        trace_id: int | None = None,
    ) -> RecordedSpan:
        root = None if trace_id is None else (trace_id, self._is_sampled(trace_id))
        return self._begin(name, kind, attributes, links, contexts.get_current(), root=root)

    def past_span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes | None,
        links: Sequence[Link],
        begun: Moment,
        ended: Moment,
        error: str | None,
    ) -> None:
        span = self._begin(name, kind, attributes, links, contexts.get_current(), begun=_nanoseconds(begun))
        if error is not None:
            span.fail(error)
        span.end(_nanoseconds(ended))

    def run_span(
        self,
        name: str,
        span_id: int,
        trace_id: int | None,
        sampled: bool | None,
        attributes: Attributes | None,
        links: Sequence[Link],
        begun: Moment | None,
    ) -> RecordedSpan:
        context = contexts.get_current()
        root = None
        if trace_id is not None:
            root = (trace_id, self._is_sampled(trace_id) if sampled is None else sampled)
        span = self._begin(name, "consumer", attributes, links, context, span_id=span_id, root=root)
        if begun is not None:
            span.begun = _nanoseconds(begun)
        if not span.sampled:
            span.keep_inside()
        return span

    def _begin(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes | None,
        links: Sequence[Link],
        context: Context,
        *,
        begun: int | None = None,
        span_id: int | None = None,
        root: tuple[int, bool] | None = None,
    ) -> RecordedSpan:
        parent = None if root else trace.get_current_span(context).get_span_context()
        if parent is not None and parent.is_valid:
            trace_id, sampled, state = parent.trace_id, parent.trace_flags.sampled, parent.trace_state
        else:
            parent = None
            trace_id, sampled = root or self._new_trace()
            state = None
        return RecordedSpan(
            self,
            name,
            _KINDS[kind],
            SpanContext(
                trace_id,
                span_id or _new_span_id(),
                is_remote=False,
                trace_flags=_FLAGS[sampled],
                trace_state=state,
            ),
            parent,
            {**job_attributes(context), **(attributes or {})},
            [made for link in links if (made := _made(link))],
            context,
            time.time_ns() if begun is None else begun,
        )

    def _new_trace(self) -> tuple[int, bool]:
        trace_id = random.getrandbits(128) or 1
        return trace_id, self._is_sampled(trace_id)

    def beside(
        self, span: RecordedSpan, name: str, attributes: Attributes | None, links: Sequence[Link]
    ) -> RecordedSpan:
        """A span with the same trace, parent and job as another."""
        where = span.get_span_context()
        return RecordedSpan(
            self,
            name,
            trace.SpanKind.INTERNAL,
            SpanContext(where.trace_id, _new_span_id(), False, where.trace_flags, where.trace_state),
            span.parent,
            {**job_attributes(span.context), **(attributes or {})},
            [made for link in links if (made := _made(link))],
            span.context,
            0,
        )

    def emit(self, span: RecordedSpan, flags: TraceFlags | None = None) -> None:
        """Export a span that has ended; with `flags`, as if its trace had been sampled."""
        where = span.get_span_context()
        if flags is not None:
            where = SpanContext(where.trace_id, where.span_id, False, flags, where.trace_state)
        self._export(
            ReadableSpan(
                span.name,
                context=where,
                parent=span.parent,
                resource=self._resource,
                attributes=span.attributes,
                events=span.events,
                links=span.links,
                kind=span.kind,
                status=span.status,
                start_time=span.begun,
                end_time=span.ended,
                instrumentation_scope=_SCOPE,
            )
        )

    def carrier(self) -> dict[str, str]:
        context = contexts.get_current()
        where = trace.get_current_span(context).get_span_context()
        if not where.is_valid:
            return {}
        carried = {"traceparent": traceparent(where.trace_id, where.span_id, sampled=where.trace_flags.sampled)}
        if where.trace_state:
            carried["tracestate"] = where.trace_state.to_header()
        job = job_attributes(context)
        if job:
            carried["baggage"] = ",".join(f"{name}={quote(str(value), safe='')}" for name, value in job.items())
        return carried

    def joined(self, carrier: Mapping[str, str]) -> Attached:
        found = parse(carrier.get("traceparent"))
        context = contexts.get_current()
        if found is not None:
            state = carrier.get("tracestate")
            where = SpanContext(
                found.trace_id,
                found.span_id,
                is_remote=True,
                trace_flags=_FLAGS[found.sampled],
                trace_state=TraceState.from_header([state]) if state else None,
            )
            context = trace.set_span_in_context(trace.NonRecordingSpan(where), context)
        job = _job_of_baggage(carrier.get("baggage"))
        if job:
            context = contexts.set_value(_JOB, job, context)
        return Attached(context)

    def about_job(self, job_id: uuid.UUID | str, tenant: str, kind: str, attempt: int | None) -> Attached:
        job: dict[str, str | int] = {"job.id": str(job_id), "tenant.id": tenant, "job.kind": kind}
        if attempt is not None:
            job["job.attempt"] = attempt
        return Attached(current={_JOB: job})

    def current_ids(self, *, sampled: bool) -> tuple[str, str] | None:
        where = trace.get_current_span().get_span_context()
        if not where.is_valid or (sampled and not where.trace_flags.sampled):
            return None
        return f"{where.trace_id:032x}", f"{where.span_id:016x}"


class Attached:
    """A context that is current inside a block: a given one, or what is current then with more values."""

    __slots__ = ("_context", "_more", "_token")

    def __init__(self, context: Context | None = None, *, current: Mapping[str, object] | None = None) -> None:
        self._context = context
        self._more = current
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        context = self._context
        if context is None:
            context = Context({**contexts.get_current(), **(self._more or {})})
        self._token = contexts.attach(context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            contexts.detach(self._token)


class RecordedSpan(spans.Span, trace.Span):
    """A span at work. Entered, it is the current one."""

    __slots__ = (
        "_entered",
        "_kept",
        "_recorder",
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
        recorder: Recorder,
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
        self._recorder = recorder
        self.context = context
        """What was current when it began."""
        self._entered: Token[Context] | None = None
        self._kept: list[Callable[[], RecordedSpan]] | None = None

    @property
    def sampled(self) -> bool:
        return self._where.trace_flags.sampled

    def keep_inside(self) -> None:
        """Keep this span and those inside it until it has ended, and export them if it has failed by then."""
        self._kept = []

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
        self._where = SpanContext(old.trace_id, _new_span_id(), False, old.trace_flags, old.trace_state)

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
            span = self._recorder.beside(self, name, attributes, links)
            span.begun = _nanoseconds(begun)
            span.ended = max(_nanoseconds(ended), span.begun)
            return span

        if self.sampled:
            self._recorder.emit(make())
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
            self.fail(error_type(error))
        if self._entered is not None:
            contexts.detach(self._entered)
            self._entered = None
        self.end()

    def end(self, end_time: int | None = None) -> None:
        if self.ended:
            return
        self.ended = max(time.time_ns() if end_time is None else end_time, self.begun)
        if self._where.trace_flags.sampled:
            self._recorder.emit(self)
        elif self._kept is not None:
            self._export_if_failed(self._kept)
        else:
            kept = contexts.get_value(_RUN, self.context)
            if isinstance(kept, list) and len(kept) < _MOST_KEPT:
                kept.append(lambda: self)

    def _export_if_failed(self, kept: list[Callable[[], RecordedSpan]]) -> None:
        if self.status.status_code is StatusCode.ERROR:
            for span in (*(make() for make in kept), self):
                self._recorder.emit(span, _FLAGS[True])
        kept.clear()

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
        self.add_event("exception", {"exception.type": error_type(exception)}, timestamp)


_UNSET = Status(StatusCode.UNSET)


def job_attributes(context: Context) -> Mapping[str, Any]:
    """The attributes of the job that a context is about."""
    job = contexts.get_value(_JOB, context)
    return job if isinstance(job, dict) else {}


def error_type(error: BaseException) -> str:
    """The taxonomy's code of an exception, or its class. Never its message, which may quote a document."""
    code = getattr(error, "code", None)
    return str(code) if isinstance(code, StrEnum) else type(error).__name__


def _made(link: Link) -> trace.Link | None:
    found = parse(link.traceparent)
    if found is None:
        return None
    flags = TraceFlags(SAMPLED if found.sampled else 0)
    where = SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=flags)
    return trace.Link(where, {"waybill.link": link.why})


def _job_of_baggage(baggage: str | None) -> dict[str, str | int]:
    """The four members that are ours. Whatever else somebody sends is dropped."""
    job: dict[str, str | int] = {}
    for member in (baggage or "")[:4096].split(","):
        name, _, value = member.partition(";")[0].partition("=")
        name, value = name.strip(), unquote(value.strip())[:_LONGEST]
        if name in JOB_ATTRIBUTES:
            job[name] = int(value) if name == "job.attempt" and value.isdecimal() else value
    return job


def _new_span_id() -> int:
    return random.getrandbits(64) or 1


def _short(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str) else value


def _nanoseconds(moment: Moment) -> int:
    if isinstance(moment, datetime):
        return int(moment.timestamp() * 1_000_000) * 1000
    return moment
