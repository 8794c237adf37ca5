"""Where spans go, and how many. Every process has these settings, because a trace goes through all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings

from waybill.config.values import Bare

_Lower = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)


_TRACE_ID = "{trace_id}"

# What both HTTP and gRPC can send. Anything else would only be noticed as spans that never arrive.
_HEADER_NAME = re.compile(r"[a-z0-9_.-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[ -~]*")


def _protocol(word: str, given: Mapping[str, str]) -> str:  # noqa: ARG001
    return "http" if word.strip().lower() == "http/protobuf" else word


class TraceSettings(BaseSettings):
    """Traces: off until somebody says where to send them."""

    otlp_endpoint: Annotated[str | None, Bare("OTEL_EXPORTER_OTLP_ENDPOINT")] = Field(
        None,
        examples=["http://localhost:4318"],
        description="Where spans are sent by OTLP: an OpenTelemetry collector, or Jaeger. Not set by default, and then"
        " tracing is off and costs nothing. With `http`, `/v1/traces` is added unless the address has a path.",
    )
    otlp_protocol: Annotated[
        Literal["http", "grpc"],
        _Lower,
        Bare("OTEL_EXPORTER_OTLP_PROTOCOL", convert=_protocol, note="`http/protobuf` is `http`"),
    ] = Field("http", description="How they are sent. A collector usually listens on 4318 for `http`, 4317 for `grpc`.")
    otlp_headers: Annotated[SecretStr | None, Bare("OTEL_EXPORTER_OTLP_HEADERS")] = Field(
        None,
        description="Headers that the collector asks for, most often a key (`api-key=secret,other=value`; values are"
        " percent-encoded).",
    )
    trace_sample_ratio: Annotated[float, Bare("OTEL_TRACES_SAMPLER_ARG")] = Field(
        1.0,
        ge=0,
        le=1,
        description="Which part of the traces is recorded; 0.01 is one in a hundred. A trace is recorded as a whole or"
        " not at all. Runs that fail are always recorded.",
    )
    trace_jobs: Annotated[Literal["child", "link"], _Lower] = Field(
        "child",
        description="Whether a job's runs are in the trace of the request that enqueued it (`child`), so that one trace"
        " shows the job's whole life, or each is a trace of its own that links to it (`link`).",
    )
    trace_trust_callers: bool = Field(
        False,
        description="Set this if only programs of yours call the API: their traces then go on here. Otherwise a request"
        " starts a trace that links to the caller's, since a stranger must not choose what is recorded, nor write into"
        " a trace of somebody else's.",
    )
    trace_url_template: str | None = Field(
        None,
        examples=["http://localhost:16686/trace/{trace_id}"],
        description="Where people see a trace, with `{trace_id}` for its id. API, pages and `waybill jobs show` then"
        " link each job to its trace.",
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _address(cls, given: str | None) -> str | None:
        # `/v1/traces` would be added to a query.
        if given is not None and (not _is_address(given) or re.search(r"^[a-z]+://[^/]*[?#]", given)):
            raise PydanticCustomError("waybill", "must look like http://collector:4318")
        return given

    @field_validator("trace_url_template")
    @classmethod
    def _template(cls, given: str | None) -> str | None:
        if given is not None and not _is_template(given):
            raise PydanticCustomError(
                "waybill",
                "must be an address (http or https, without a password) with '{name}' once after its host",
                {"name": _TRACE_ID},
            )
        return given

    @field_validator("otlp_headers")
    @classmethod
    def _headers(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None:
            _parse_headers(given.get_secret_value())
        return given

    def otlp_traces_url(self) -> str:
        """Where `http` posts spans."""
        endpoint = self.otlp_endpoint or ""
        return endpoint if urlsplit(endpoint).path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"

    def otlp_header_map(self) -> dict[str, str]:
        return _parse_headers(self.otlp_headers.get_secret_value()) if self.otlp_headers else {}


def _is_template(text: str) -> bool:
    if not _is_address(text) or re.search(r"""["'<>`\\]""", text):
        return False
    place, rest = urlsplit(text).netloc, text.replace(_TRACE_ID, "", 1)
    # A password would be shown to everybody who may see a job.
    return len(rest) < len(text) and "{" not in rest and "}" not in rest and "@" not in place and "{" not in place


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = re.search(r"[\s\x00-\x1f\x7f]", text) is None
    return plain and port != 0 and parts.scheme in ("http", "https") and bool(parts.hostname)


def _parse_headers(text: str) -> dict[str, str]:
    headers = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = each.partition("=")
        name, value = name.strip().lower(), unquote(value.strip())
        if not equals or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise PydanticCustomError("waybill", "must look like name=value,name=value, with values in ASCII")
        headers[name] = value
    return headers
