"""OpenTelemetry's exporter over gRPC, with our encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan

from waybill.telemetry.wire_format import encoded


class GrpcExporter(OTLPSpanExporter):
    def _translate_data(self, data: Sequence[ReadableSpan]) -> Any:
        request = encode_spans([])
        request.MergeFromString(encoded(data))
        return request
