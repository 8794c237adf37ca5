"""The span of a request: a part of its caller's trace, if the caller is one of our services.

Anybody else must not write into our traces, nor decide what is recorded: their trace is only linked. A run that fails
is exported even if its trace is not sampled; so is the request that it failed with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Scope
from structlog.contextvars import bind_contextvars

from waybill.http.request_place import route_of
from waybill.telemetry import spans
from waybill.telemetry.spans import Link, Span
from waybill_gateway.callers import is_proven

_CARRIER = ("traceparent", "tracestate", "baggage")


@contextmanager
def request_span(scope: Scope, headers: Headers) -> Iterator[Span]:
    if not spans.on():
        yield Span()
        return
    route, method = str(route_of(scope)), scope["method"]
    given = {name: headers[name] for name in _CARRIER if name in headers}
    proven = is_proven(scope)
    links = [] if proven or "traceparent" not in given else [Link(given["traceparent"], "caller")]
    attributes = {"http.request.method": method, "http.route": route}
    with spans.joined(given if proven else {}):
        begun = spans.span(f"{method} {route}", kind="server", attributes=attributes, links=links)
        if proven:
            # A refused document is no failure of this request, but it is one of the parse, and of the run that sent it.
            begun.keep_inside(any_failure=True)
        with begun as span:
            try:
                yield span
            finally:
                # The access log is written when the span has ended, and belongs to it.
                if (ids := spans.current_ids()) is not None:
                    bind_contextvars(trace_id=ids[0], span_id=ids[1])
