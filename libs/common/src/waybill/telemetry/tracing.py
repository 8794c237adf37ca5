"""Switches traces on and off. Without `WAYBILL_OTLP_ENDPOINT` nothing here imports OpenTelemetry.

Call `start` once, after the log is configured and after any fork, and `stop` last, when nothing makes spans any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from waybill.config.trace_settings import TraceSettings
from waybill.telemetry import spans

if TYPE_CHECKING:
    from waybill.telemetry.pipeline import Pipeline

log: structlog.stdlib.BoundLogger = structlog.get_logger()

STOP_WITHIN = 3.0
"""Seconds that the last spans get to leave the process."""

_pipeline: Pipeline | None = None


def start(settings: TraceSettings, service: str) -> None:
    """Export this process's spans as `waybill-<service>`, if the settings say where to."""
    global _pipeline
    if settings.otlp_endpoint is None or _pipeline is not None:
        return
    try:
        from waybill.telemetry.pipeline import Pipeline
    except ImportError as error:
        log.error("traces_off", missing=error.name, install="waybill-common[traces]")
        return
    _pipeline = Pipeline(settings, service)
    spans.install(_pipeline.recorder)


def stop(timeout: float = STOP_WITHIN) -> None:
    """Send what is left, for at most `timeout` seconds, and switch spans off."""
    global _pipeline
    pipeline, _pipeline = _pipeline, None
    if pipeline is not None:
        spans.install(None)
        pipeline.close(timeout)


def pipeline() -> Pipeline | None:
    """What spans go through in this process; None when traces are off."""
    return _pipeline
