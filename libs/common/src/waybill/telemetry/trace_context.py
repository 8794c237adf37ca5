"""What is current in a process that records spans: the span, the job it is about, and how both travel on.

Another process learns of them from a carrier: `traceparent` and `tracestate` name the span, `baggage` the job.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextvars import Token
from typing import Any
from urllib.parse import quote, unquote

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, TraceFlags, TraceState

from waybill.telemetry.spans import JOB_ATTRIBUTES
from waybill.telemetry.trace_ids import RANDOM, SAMPLED, parse, traceparent

FLAGS = {False: TraceFlags(RANDOM), True: TraceFlags(RANDOM | SAMPLED)}
"""Of a trace, by whether it is sampled."""
LONGEST_VALUE = 512
"""Characters of an attribute."""
_JOB = contexts.create_key("waybill-job")


def job_attributes(context: Context) -> Mapping[str, Any]:
    """The attributes of the job that a context is about."""
    job = contexts.get_value(_JOB, context)
    return job if isinstance(job, dict) else {}


def carrier() -> dict[str, str]:
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


def joined(carrier: Mapping[str, str]) -> Attached:
    found = parse(carrier.get("traceparent"))
    context = contexts.get_current()
    if found is not None:
        state = carrier.get("tracestate")
        where = SpanContext(
            found.trace_id,
            found.span_id,
            is_remote=True,
            trace_flags=FLAGS[found.sampled],
            trace_state=TraceState.from_header([state]) if state else None,
        )
        context = trace.set_span_in_context(trace.NonRecordingSpan(where), context)
    job = _job_of_baggage(carrier.get("baggage"))
    if job:
        context = contexts.set_value(_JOB, job, context)
    return Attached(context)


def about_job(job_id: uuid.UUID | str, tenant: str, kind: str, attempt: int | None) -> Attached:
    job: dict[str, str | int] = {"job.id": str(job_id), "tenant.id": tenant, "job.kind": kind}
    if attempt is not None:
        job["job.attempt"] = attempt
    return Attached(current={_JOB: job})


def current_ids(*, sampled: bool) -> tuple[str, str] | None:
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


def _job_of_baggage(baggage: str | None) -> dict[str, str | int]:
    """The four members that are ours. Whatever else somebody sends is dropped."""
    job: dict[str, str | int] = {}
    for member in (baggage or "")[:4096].split(","):
        name, _, value = member.partition(";")[0].partition("=")
        name, value = name.strip(), unquote(value.strip())[:LONGEST_VALUE]
        if name in JOB_ATTRIBUTES:
            job[name] = int(value) if name == "job.attempt" and value.isdecimal() else value
    return job
