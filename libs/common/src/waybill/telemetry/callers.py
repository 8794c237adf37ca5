"""What we take from the headers of whoever calls us. Only processes with traces import this module."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from waybill.telemetry.trace_ids import SAMPLED, parse


class TrustedTraces(TraceContextTextMapPropagator):
    """Goes on with the caller's trace, but ignores its baggage, which would end up in our spans."""


class StrangersTraces(TextMapPropagator):
    """Takes nothing from a caller."""

    def extract(
        self,
        carrier: CarrierT,  # noqa: ARG002
        context: Context | None = None,
        getter: Getter[CarrierT] = default_getter,  # noqa: ARG002
    ) -> Context:
        return Context() if context is None else context

    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        TraceContextTextMapPropagator().inject(carrier, context, setter)

    @property
    def fields(self) -> set[str]:
        return {"traceparent", "tracestate"}


def caller_of(headers: Iterable[tuple[bytes, bytes]]) -> SpanContext | None:
    """The span that a request says it comes from."""
    given = next((value for name, value in headers if name == b"traceparent"), None)
    found = parse(given.decode("latin-1")) if given is not None else None
    if found is None:
        return None
    flags = TraceFlags(SAMPLED if found.sampled else 0)
    return SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=flags)
