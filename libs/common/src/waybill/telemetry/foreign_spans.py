"""Cleans the spans that a library made.

Libraries record URLs with their query strings, headers, and exceptions with messages that may quote a document. We
keep the attributes of a request that are on the list, and the class of an exception.
"""

from __future__ import annotations

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Status

from waybill.telemetry.spans import JOB_ATTRIBUTES

_KEPT = frozenset(
    {
        "error.type",
        "http.request.method",
        "http.response.status_code",
        "http.route",
        "network.protocol.version",
        "url.scheme",
        *JOB_ATTRIBUTES,
    }
)


def cleaned(span: ReadableSpan) -> ReadableSpan:
    scope = span.instrumentation_scope
    attributes = span.attributes or {}
    if scope is not None and scope.name.startswith("opentelemetry.instrumentation."):
        attributes = {name: value for name, value in attributes.items() if name in _KEPT or name.startswith("waybill.")}
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        events=[_cleaned_event(event) for event in span.events],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=scope,
    )


def _cleaned_event(event: Event) -> Event:
    if event.name != "exception":
        return event
    kind = (event.attributes or {}).get("exception.type", "")
    return Event(event.name, {"exception.type": kind}, event.timestamp)
