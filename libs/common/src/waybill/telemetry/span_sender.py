"""Sends batches of spans to the collector, and leaves it alone while it does not answer.

It says once that spans are lost, and once that they arrive again, with how many were lost. In between it drops batches
unread, except for one now and then that finds out whether the collector is back: encoding spans for nobody would cost a
busy worker a tenth of its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


class SpanSender(SpanExporter):
    def __init__(self, exporter: SpanExporter, endpoint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._clock = clock
        self._pause = 0.0
        self._again_at = 0.0
        self._dropped = 0

    @property
    def lost(self) -> bool:
        """The collector did not take the last batch that it was offered."""
        return self._pause > 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.lost and self._clock() < self._again_at:
            self._dropped += len(spans)
            return SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 - whatever it is, it must not end the thread that exports
            result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            if self.lost:
                log.info("traces_arrive_again", endpoint=self._endpoint, lost=self._dropped)
                self._pause, self._dropped = 0.0, 0
            return result
        if not self.lost:
            log.warning("traces_lost", endpoint=self._endpoint, setting="WAYBILL_OTLP_ENDPOINT")
        self._dropped += len(spans)
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._again_at = self._clock() + self._pause
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)
