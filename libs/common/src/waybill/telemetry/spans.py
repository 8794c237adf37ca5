"""Spans: what happened, when, and as a part of what. This is all of tracing that the rest of the code knows.

    with spans.span("claim", kind="consumer", attributes={"waybill.jobs": 3}) as span:
        span.set({"waybill.lines": 12})

A process in which traces are off runs through here without importing anything of OpenTelemetry. `traces.start`
switches them on.

An attribute is never a piece of a document, and neither is an error: a span that an exception leaves says which code of
the taxonomy it had, or its class, and never its message.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from waybill.telemetry.recorder import Recorder

SpanKind = Literal["internal", "server", "client", "producer", "consumer"]
Value = str | int | float | bool | Sequence[str]
Attributes = Mapping[str, Value]
Moment = datetime | int
"""An aware datetime, or nanoseconds since 1970."""

JOB_ATTRIBUTES = ("job.id", "tenant.id", "job.kind", "job.attempt")
"""What every span inside `about_job` carries, in this process and in those that it calls."""


class Link(NamedTuple):
    """Another span that this one has to do with, without being a part of it."""

    traceparent: str
    why: str
    """Becomes the link's attribute `waybill.link`."""


class Span:
    """A span that goes nowhere. It is what everybody gets while traces are off."""

    __slots__ = ()

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        """Something that happened at one moment within the span."""

    def fail(self, code: str) -> None:
        """Make it an error, with this `error.type`: a code of the taxonomy, or the name of an exception's class."""

    def end(self) -> None:
        """End it now, not when its block is left."""

    def keep_inside(self, *, any_failure: bool = False) -> None:
        """If its trace is not sampled, export it and what is inside nevertheless if it fails, or with `any_failure` if
        something inside fails. Call it before it is entered."""

    def disown(self) -> None:
        """Take another id, because somebody else tells of the same thing under the one that it had."""

    def beside(
        self,
        name: str,
        *,
        begun: Moment,
        ended: Moment,
        attributes: Attributes | None = None,
        links: Sequence[Link] = (),
    ) -> None:
        """A span of something that is over, beside this one: it has the same parent, and is exported if this one is."""

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


_NOTHING = Span()
_recorder: Recorder | None = None


def install(recorder: Recorder | None) -> None:
    """Switch spans on, or off with None. Only `traces` calls it."""
    global _recorder
    _recorder = recorder


def on() -> bool:
    """Whether spans are recorded. Ask before you compute something that only a span needs."""
    return _recorder is not None


def span(
    name: str,
    *,
    kind: SpanKind = "internal",
    attributes: Attributes | None = None,
    links: Sequence[Link] = (),
    trace_id: int | None = None,
) -> Span:
    """A span around a block: a part of the current one, or the first of a new trace.

    With a `trace_id` it has no parent and is in that trace.
    """
    if _recorder is None:
        return _NOTHING
    return _recorder.span(name, kind, attributes, links, trace_id)


def past_span(
    name: str,
    *,
    begun: Moment,
    ended: Moment,
    kind: SpanKind = "internal",
    attributes: Attributes | None = None,
    links: Sequence[Link] = (),
    error: str | None = None,
) -> None:
    """A span of something that is over, such as the wait in a queue. `error` makes it one, with this `error.type`."""
    if _recorder is not None:
        _recorder.past_span(name, kind, attributes, links, begun, ended, error)


def run_span(
    name: str,
    *,
    span_id: int,
    trace_id: int | None = None,
    sampled: bool | None = None,
    attributes: Attributes | None = None,
    links: Sequence[Link] = (),
    begun: Moment | None = None,
) -> AbstractContextManager[Span]:
    """The span of one run of a job, under an id that the caller chose.

    If it fails, it is exported with everything inside it, even if its trace is not sampled. With a `trace_id` it is the
    first span of that trace, which is sampled as `sampled` says, or else as the sampler does.
    """
    if _recorder is None:
        return _NOTHING
    return _recorder.run_span(name, span_id, trace_id, sampled, attributes, links, begun)


def runs_apart() -> bool:
    """Whether each run of a job is a trace of its own (`WAYBILL_TRACE_JOBS=link`)."""
    return _recorder is not None and _recorder.runs_apart


def carrier() -> dict[str, str]:
    """The current span for another process, as the headers `traceparent`, `tracestate` and `baggage`; {} when off."""
    return _recorder.carrier() if _recorder is not None else {}


def joined(carrier: Mapping[str, str]) -> AbstractContextManager[object]:
    """Go on with the trace that a carrier names, and with the job it is about. Only for carriers of our own."""
    return _recorder.joined(carrier) if _recorder is not None else _NOTHING


def about_job(
    *, job_id: uuid.UUID | str, tenant: str, kind: str, attempt: int | None = None
) -> AbstractContextManager[object]:
    """Say on every span inside, in other processes too, which job it is about."""
    if _recorder is None:
        return _NOTHING
    return _recorder.about_job(job_id, tenant, kind, attempt)


def current_ids(*, sampled: bool = False) -> tuple[str, str] | None:
    """The current trace and span in hexadecimal, for logs and exemplars; None if there is none.

    With `sampled`, only if the trace is recorded, so that a link to it leads somewhere.
    """
    return _recorder.current_ids(sampled=sampled) if _recorder is not None else None


def error_type(error: BaseException) -> str:
    """The taxonomy's code of an exception, or its class. Never its message, which may quote a document."""
    code = getattr(error, "code", None)
    return str(code) if isinstance(code, StrEnum) else type(error).__name__
