"""How spans leave this process: who it is, what is sampled, and where spans go.

Spans wait in a bounded queue until a thread exports them. What does not fit is dropped: a job never waits for a
collector.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Sequence

from opentelemetry.context import Context, get_current
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

from waybill import __version__
from waybill.config.trace_settings import TraceSettings
from waybill.telemetry.foreign_spans import cleaned
from waybill.telemetry.recorder import Recorder
from waybill.telemetry.span_sender import SpanSender
from waybill.telemetry.trace_context import job_attributes

_QUEUE = 8192
"""Spans that wait at most: some ten megabytes."""
_BATCH = 512
_EVERY = 1000
"""Milliseconds between exports of a calm process."""
_REQUEST = 5.0
"""Seconds that one request to the collector may take, with its repetitions."""
_RANDOM_BITS = 56
"""How many bits of a trace's id are random (W3C Trace Context, level 2), also if it is a UUIDv7."""


class SpanExport:
    def __init__(self, settings: TraceSettings, service: str) -> None:
        for library in ("opentelemetry", "urllib3"):
            logging.getLogger(library).setLevel(logging.CRITICAL)  # `SpanSender` says what is worth saying
        resource = Resource.create(
            {
                "service.name": f"waybill-{service}",
                "service.namespace": "waybill",
                "service.version": __version__,
                "service.instance.id": str(uuid.uuid4()),
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
            }
        )
        sampler = RatioSampler(settings.trace_sample_ratio)
        self._sender = SpanSender(_exporter(settings), str(settings.otlp_endpoint))
        self._batches = BatchSpanProcessor(
            self._sender, max_queue_size=_QUEUE, schedule_delay_millis=_EVERY, max_export_batch_size=_BATCH
        )
        self.recorder = Recorder(
            resource, sampler.is_sampled, self._batches.on_end, runs_apart=settings.trace_jobs == "link"
        )
        # For spans that others make with OpenTelemetry's API: the instrumentation of FastAPI, and handlers.
        self.provider = TracerProvider(ParentBased(sampler), resource, shutdown_on_exit=False)
        self.provider.add_span_processor(_ForeignSpans(self._batches))
        self.settings = settings

    @property
    def lost(self) -> bool:
        """The collector does not take what it is sent."""
        return self._sender.lost

    @property
    def waiting(self) -> int:
        """How many spans wait to be exported."""
        return len(self._batches._batch_processor._queue)  # the SDK has no other way to tell

    def close(self, timeout: float) -> None:
        """Export what is left. A collector that is known to be away is not waited for."""
        if self._sender.lost:
            timeout = min(timeout, 0.2)
        # The processor's own limit is 30 s, so it gets a thread that we do not wait for to the end.
        closing = threading.Thread(target=self._batches.shutdown, name="waybill-last-spans", daemon=True)
        closing.start()
        closing.join(timeout)


class RatioSampler(Sampler):
    """Decides by the trace's id, so that all processes decide alike, by the bits that are random in a UUIDv7 too."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._from = round((1 - ratio) * (1 << _RANDOM_BITS))

    def is_sampled(self, trace_id: int) -> bool:
        return trace_id & ((1 << _RANDOM_BITS) - 1) >= self._from

    def should_sample(
        self,
        parent_context: Context | None,  # noqa: ARG002
        trace_id: int,
        name: str,  # noqa: ARG002
        kind: SpanKind | None = None,  # noqa: ARG002
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,  # noqa: ARG002
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        decision = Decision.RECORD_AND_SAMPLE if self.is_sampled(trace_id) else Decision.DROP
        return SamplingResult(decision, attributes, trace_state)

    def get_description(self) -> str:
        return f"RatioSampler{{{self._ratio:g}}}"


class _ForeignSpans(SpanProcessor):
    """Says of spans that we did not make which job they are about, and keeps secrets and documents out of them."""

    def __init__(self, batches: BatchSpanProcessor) -> None:
        self._batches = batches

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attributes(job_attributes(get_current() if parent_context is None else parent_context))

    def on_end(self, span: ReadableSpan) -> None:
        self._batches.on_end(cleaned(span))


def _exporter(settings: TraceSettings) -> SpanExporter:
    headers = settings.otlp_header_map()
    if settings.otlp_protocol == "grpc":
        from waybill.telemetry.grpc_exporter import GrpcExporter

        endpoint = str(settings.otlp_endpoint)
        return GrpcExporter(
            endpoint, insecure=not endpoint.startswith("https://"), headers=headers or None, timeout=_REQUEST
        )
    from waybill.telemetry.http_exporter import HttpExporter

    return HttpExporter(settings.otlp_traces_url(), headers=headers or None, timeout=_REQUEST)
