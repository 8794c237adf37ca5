"""Switches traces on and off. Without `WAYBILL_OTLP_ENDPOINT` nothing here imports OpenTelemetry.

Call `start` once, after the log is configured and after any fork, and `stop` last, when nothing makes spans any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from waybill.config.trace_settings import TraceSettings
from waybill.telemetry import spans

if TYPE_CHECKING:
    from waybill.telemetry.span_export import SpanExport

log: structlog.stdlib.BoundLogger = structlog.get_logger()

STOP_WITHIN = 3.0
"""Seconds that the last spans get to leave the process."""

_export: SpanExport | None = None


def start(settings: TraceSettings, service: str) -> None:
    """Export this process's spans as `waybill-<service>`, if the settings say where to."""
    global _export
    if settings.otlp_endpoint is None or _export is not None:
        return
    try:
        from waybill.telemetry.span_export import SpanExport
    except ImportError as error:
        log.error("traces_off", missing=error.name, install="waybill-common[traces]")
        return
    _export = SpanExport(settings, service)
    spans.install(_export.recorder)


def stop(timeout: float = STOP_WITHIN) -> None:
    """Send what is left, for at most `timeout` seconds, and switch spans off."""
    global _export
    running, _export = _export, None
    if running is not None:
        spans.install(None)
        running.close(timeout)


def export() -> SpanExport | None:
    """What spans go through in this process; None when traces are off."""
    return _export
