"""Traces in the test's own process, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from support.otlp import ReceivedSpan, collector
from waybill.config import ProcessSettings
from waybill.telemetry import traces

Export = Callable[[], list[ReceivedSpan]]


@contextmanager
def traced(service: str = "test") -> Iterator[Export]:
    """Switch traces on. The function switches them off and returns every span, in the order in which they began."""
    with collector() as received:
        traces.start(ProcessSettings(otlp_endpoint=received.endpoint), service)

        def export() -> list[ReceivedSpan]:
            traces.stop()
            return sorted(received.spans, key=lambda span: span.begun)

        try:
            yield export
        finally:
            traces.stop()
