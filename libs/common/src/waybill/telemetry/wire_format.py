"""Spans as OTLP's protobuf, more than twice as fast as the exporter's own encoder.

The exporter's makes two objects for each attribute and takes 40 us for a span, more than a small job takes. It also
keeps the interpreter's lock for milliseconds, while the worker's loop waits. Here a plain span is put together from
bytes, most of which are known already; whatever has events or links goes through the exporter's encoder.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import pack

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

_IS_REMOTE_KNOWN, _IS_REMOTE = 0x100, 0x200
_STATUS = {StatusCode.OK: 1, StatusCode.ERROR: 2}
_KINDS = {
    SpanKind.INTERNAL: 1,
    SpanKind.SERVER: 2,
    SpanKind.CLIENT: 3,
    SpanKind.PRODUCER: 4,
    SpanKind.CONSUMER: 5,
}


def encoded(spans: Iterable[ReadableSpan]) -> bytes:
    """The body of a request to a collector. A span that cannot be written is left out."""
    groups: dict[tuple[Resource, InstrumentationScope | None], list[bytes]] = {}
    for span in spans:
        try:
            written = _field(2, _span(span))
        except Exception:  # noqa: BLE001, S112 - a handler can put anything into its span, and loses only that
            continue
        groups.setdefault((span.resource, span.instrumentation_scope), []).append(written)
    return b"".join(
        _field(1, _resource(resource) + _field(2, _scope(resource, scope) + b"".join(group)))
        for (resource, scope), group in groups.items()
    )


def _span(span: ReadableSpan) -> bytes:
    context, attributes = span.context, span.attributes or {}
    if (
        context is None
        or span.events
        or span.links
        or context.trace_state
        or not all(type(value) in _PLAIN for value in attributes.values())
    ):
        return bytes(encode_spans([span]).resource_spans[0].scope_spans[0].spans[0].SerializeToString())
    parent = span.parent
    remote = parent is not None and parent.is_remote
    parts = [
        b"\x0a\x10",
        context.trace_id.to_bytes(16, "big"),
        b"\x12\x08",
        context.span_id.to_bytes(8, "big"),
        b"" if parent is None else b"\x22\x08" + parent.span_id.to_bytes(8, "big"),
        _text(5, span.name),
        pack("<BBBQBQ", 0x30, _KINDS[span.kind], 0x39, span.start_time or 0, 0x41, span.end_time or 0),
        *[_attribute(name, value) for name, value in attributes.items()],
    ]
    code = _STATUS.get(span.status.status_code, 0)
    told = _text(2, span.status.description) if span.status.description else b""
    parts.append(_field(15, told + (bytes((0x18, code)) if code else b"")))
    parts.append(b"\x85\x01" + pack("<I", _IS_REMOTE_KNOWN | (_IS_REMOTE if remote else 0)))
    return b"".join(parts)


_PLAIN = (str, int, bool, float)


@lru_cache(4096, typed=True)  # typed, because 1 and True are equal
def _attribute(name: str, value: str | int | bool | float) -> bytes:
    if isinstance(value, str):
        data = value.encode(errors="replace")
        written = b"\x0a" + _varint(len(data)) + data
    elif isinstance(value, bool):
        written = b"\x10\x01" if value else b"\x10\x00"
    elif isinstance(value, int):
        written = b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    else:
        written = b"\x21" + pack("<d", value)
    return _field(9, _text(1, name) + _field(2, written))


@lru_cache(16)
def _resource(resource: Resource) -> bytes:
    group = encode_spans([_empty(resource, None)]).resource_spans[0]
    schema = _text(3, group.schema_url) if group.schema_url else b""
    return _field(1, group.resource.SerializeToString()) + schema


@lru_cache(64)
def _scope(resource: Resource, scope: InstrumentationScope | None) -> bytes:
    group = encode_spans([_empty(resource, scope)]).resource_spans[0].scope_spans[0]
    schema = _text(3, group.schema_url) if group.schema_url else b""
    return _field(1, group.scope.SerializeToString()) + schema


def _empty(resource: Resource, scope: InstrumentationScope | None) -> ReadableSpan:
    return ReadableSpan(
        "", SpanContext(1, 1, is_remote=False), resource=resource, instrumentation_scope=scope, start_time=0, end_time=0
    )


@lru_cache(1024)
def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode(errors="replace"))


def _field(number: int, data: bytes) -> bytes:
    """A field that is text, bytes or a message. Its number must be below 16."""
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
