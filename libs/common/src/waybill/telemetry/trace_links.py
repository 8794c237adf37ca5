"""Where a person sees the trace of a job, if the settings say where traces are shown."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from waybill.config.trace_settings import TraceSettings
from waybill.telemetry.trace_ids import trace_id_of


@dataclass(frozen=True, slots=True)
class TraceLinks:
    """Makes links from a template, `https://jaeger.example.com/trace/{trace_id}`, which the settings have checked."""

    template: str | None

    def of(self, job_id: uuid.UUID, traceparent: str | None) -> str | None:
        """The link for one job. None if there is no template."""
        if self.template is None:
            return None
        return self.template.replace("{trace_id}", trace_id_of(job_id, traceparent))


NO_LINKS = TraceLinks(None)


def trace_url(job_id: uuid.UUID, traceparent: str | None, settings: TraceSettings) -> str | None:
    """Where the trace of a job is shown. None if `WAYBILL_TRACE_URL_TEMPLATE` is not set."""
    return TraceLinks(settings.trace_url_template).of(job_id, traceparent)
