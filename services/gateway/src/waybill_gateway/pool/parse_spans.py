"""Spans about parsers. A parser has no network and knows nothing of traces: the service says here what it did."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from waybill.errors import Code
from waybill.telemetry import spans
from waybill_documents.faults import FaultCode
from waybill_gateway.pool.stage_times import stage_times

_FAULTS = frozenset(fault.value for fault in FaultCode)
_SECOND = 1_000_000_000


def describe_parse(span: spans.Span, note: Mapping[str, Any], begun: int) -> None:
    """Say in the span of a parse what the parser's note says, with a span for each stage. `begun` is in nanoseconds."""
    if not spans.on():
        return
    if note.get("fault") in _FAULTS:
        span.set({"waybill.fault": note["fault"]})
        span.fail(Code.PARSE_ERROR)
    for stage in stage_times(note, (time.time_ns() - begun) / _SECOND):
        spans.past_span(
            stage.name,
            begun=begun + int(stage.begin * _SECOND),
            ended=begun + int(stage.end * _SECOND),
            attributes={"waybill.stage.seconds": round(stage.seconds, 6)},
        )
