"""A real Jaeger, where there is one: `$JAEGER_BIN` names the program, or `$JAEGER_ENDPOINT` one that runs.

`JAEGER_ENDPOINT` is where it takes spans (`http://localhost:4318`), and `JAEGER_QUERY` where it is asked
(`http://localhost:16686`).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.child_processes import dying_with_us, free_port
from support.otlp import ReceivedSpan, collector
from support.patience import eventually

_CONFIGURATION = """
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], processors: [], exporters: [jaeger_storage_exporter]}}
  telemetry:
    metrics: {{level: none}}
    logs: {{level: warn}}
extensions:
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 10000}}}}}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: 127.0.0.1:{query}}}
    grpc: {{endpoint: 127.0.0.1:{query_grpc}}}
receivers:
  otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{otlp}}}}}}}
exporters:
  jaeger_storage_exporter: {{trace_storage: memory}}
"""


@dataclass(frozen=True)
class Jaeger:
    endpoint: str
    """Where spans go: what `WAYBILL_OTLP_ENDPOINT` needs."""
    query: str

    async def traces_of(self, job_id: str, service: str) -> list[list[ReceivedSpan]]:
        """Every trace in which this service has a span about the job."""
        asked = {"service": service, "tags": json.dumps({"job.id": job_id}), "limit": "20"}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            answer = await client.get(f"{self.query}/api/traces", params=asked)
        answer.raise_for_status()
        return [_spans(trace) for trace in answer.json()["data"] or []]


class Receiver:
    """The same questions to the tests' own receiver, for machines without a Jaeger."""

    def __init__(self, received: Any) -> None:
        self.endpoint: str = received.endpoint
        self._received = received

    async def traces_of(self, job_id: str, service: str) -> list[list[ReceivedSpan]]:
        every: list[ReceivedSpan] = self._received.spans
        found = {span.trace_id for span in every if span.service == service and span.attributes.get("job.id") == job_id}
        return [[span for span in every if span.trace_id == one] for one in sorted(found)]


@asynccontextmanager
async def trace_backend(folder: Path) -> AsyncIterator[Jaeger | Receiver]:
    """A Jaeger if there is one, and the tests' own receiver otherwise."""
    if endpoint := os.environ.get("JAEGER_ENDPOINT"):
        yield Jaeger(endpoint, os.environ.get("JAEGER_QUERY", "http://127.0.0.1:16686"))
    elif program := os.environ.get("JAEGER_BIN"):
        async with _started(program, folder) as jaeger:
            yield jaeger
    else:
        with collector() as received:
            yield Receiver(received)


@asynccontextmanager
async def _started(program: str, folder: Path) -> AsyncIterator[Jaeger]:
    otlp, query = free_port(), free_port()
    configuration, log = folder / "jaeger.yaml", folder / "jaeger.log"
    configuration.write_text(_CONFIGURATION.format(otlp=otlp, query=query, query_grpc=free_port()))
    with log.open("wb") as output:
        command = dying_with_us([program, "--config", str(configuration)])
        process = subprocess.Popen(command, stdout=output, stderr=output)
    jaeger = Jaeger(f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}")
    try:

        async def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                return await jaeger.traces_of("none", "none") == []
            except httpx.TransportError:
                return False

        await eventually(answers, what="Jaeger is ready")
        yield jaeger
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def _spans(trace: dict[str, Any]) -> list[ReceivedSpan]:
    return [_span(span, trace["processes"]) for span in trace["spans"]]


def _span(span: dict[str, Any], processes: dict[str, Any]) -> ReceivedSpan:
    """A span as Jaeger shows it. A parent is its first reference of the kind CHILD_OF, and the others are links."""
    tags = {tag["key"]: tag["value"] for tag in span["tags"]}
    references = [(one["refType"], one["traceID"], one["spanID"]) for one in span["references"]]
    parents = [one for one in references if one[0] == "CHILD_OF" and one[1] == span["traceID"]]
    parent = parents[0] if parents else None
    process = processes[span["processID"]]
    return ReceivedSpan(
        span["operationName"],
        process["serviceName"],
        span["traceID"],
        span["spanID"],
        parent[2] if parent else None,
        str(tags.pop("span.kind", "internal")),
        span["startTime"] * 1000,
        (span["startTime"] + span["duration"]) * 1000,
        tags,
        tuple(one[1:] for one in references if one is not parent),
        tuple(
            (str(log["timestamp"]), {field["key"]: field["value"] for field in log["fields"]}) for log in span["logs"]
        ),
        failed=tags.get("otel.status_code") == "ERROR",
        status=str(tags.get("otel.status_description", "")),
        resource={tag["key"]: tag["value"] for tag in process["tags"]},
    )
