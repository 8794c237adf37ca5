"""OpenTelemetry's exporter over HTTP, with our encoder."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from waybill.telemetry.wire_format import encoded


class HttpExporter(OTLPSpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._shutdown:
            return SpanExportResult.FAILURE
        sent = self._client.export(encoded(spans))
        return SpanExportResult.SUCCESS if sent.success else SpanExportResult.FAILURE
