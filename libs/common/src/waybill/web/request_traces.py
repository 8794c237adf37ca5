"""A span for each request. Whoever calls us does not decide what we record.

A stranger's `traceparent` would choose what is sampled and could name somebody else's trace. So a request starts a
trace of its own, which links to the caller's. `WAYBILL_TRACE_TRUST_CALLERS` has it go on with the caller's instead.
Baggage is never taken from outside.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from waybill.telemetry import traces

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_QUIET = "/livez,/readyz,/api/healthz,/api/stream,/static/"
"""Requests that say nothing about anybody's work, and streams, which last for hours."""


def trace_requests(app: FastAPI) -> None:
    """Trace the application's requests, if this process has traces."""
    export = traces.export()
    if export is None:
        return
    # Its present names for attributes, not those of years ago. It reads this when it is imported.
    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http")
    from opentelemetry import propagate
    from opentelemetry.instrumentation import asgi
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

    from waybill.telemetry.callers import StrangersTraces, TrustedTraces, caller_of

    # Its own takes what is not UTF-8 for Python's escapes, and raises outside all our error handling if they are wrong:
    # any visitor's `User-Agent` could have a request answered with 500 and no line in the access log.
    asgi._decode_header_item = _text
    trusted = export.settings.trace_trust_callers
    propagate.set_global_textmap(TrustedTraces() if trusted else StrangersTraces())

    def link_caller(span: Span, scope: dict[str, Any]) -> None:
        caller = None if trusted else caller_of(scope["headers"])
        if caller is not None:
            span.add_link(caller, {"waybill.link": "caller"})

    FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=export.provider,
        server_request_hook=link_caller,
        excluded_urls=_QUIET,
        exclude_spans=["receive", "send"],
    )


def _text(header: bytes) -> str:
    return header.decode("latin-1")
