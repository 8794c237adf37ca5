"""A link leads from a job to its trace, and nothing else can be made of its template."""

from __future__ import annotations

import uuid

import pytest
from pydantic import ValidationError

from waybill.config import ProcessSettings
from waybill.telemetry.trace_links import NO_LINKS, trace_url

JOB = uuid.UUID("0199a3a0-0000-7000-8000-000000000001")


def url(template: str | None, traceparent: str | None = None) -> str | None:
    return trace_url(JOB, traceparent, ProcessSettings(trace_url_template=template))


def test_a_link_has_the_stored_trace_or_else_the_jobs_own() -> None:
    template = "https://grafana.example.com/explore?left=%7B%22query%22:%22{trace_id}%22%7D"
    stored = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert url(template, stored) == template.replace("{trace_id}", "4bf92f3577b34da6a3ce929d0e0e4736")
    assert url("http://localhost:16686/trace/{trace_id}") == f"http://localhost:16686/trace/{JOB.hex}"
    assert url(template, 'nonsense"><script>') == template.replace("{trace_id}", JOB.hex)


def test_without_a_template_there_is_no_link() -> None:
    assert url(None) is None
    assert NO_LINKS.of(JOB, None) is None


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert('{trace_id}')",
        "//example.com/{trace_id}",
        "https://example.com/trace",
        "https://example.com/{trace_id}/{trace_id}",
        "https://example.com/{job_id}/{trace_id}",
        "https://{trace_id}.example.com/",
        "https://admin:hunter2@example.com/{trace_id}",
        'https://example.com/{trace_id}"onclick=',
        "https://example.com/{trace_id} x",
    ],
)
def test_a_template_that_is_no_plain_address_is_refused(template: str) -> None:
    with pytest.raises(ValidationError, match="trace_id") as refused:
        url(template)
    assert "hunter2" not in str(refused.value)
