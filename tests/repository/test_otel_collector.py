"""`deploy/otel-collector.yaml` has only fields that a collector knows, and keeps what the documents promise.

No collector is needed. The classes below are those parts of its configuration that the file uses, with the names and
types of the collector's own documentation. A collector refuses names that it does not know, and so do they.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Duration = Annotated[str, Field(pattern=r"^([0-9]+(ms|s|m|h))+$")]
Address = Annotated[str, Field(pattern=r"^[\w.-]+:[0-9]{2,5}$")]
Percentage = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, strict=True)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Endpoint(Part):
    endpoint: Address


class Protocols(Part):
    http: Endpoint
    grpc: Endpoint


class OtlpReceiver(Part):
    protocols: Protocols


class Receivers(Part):
    otlp: OtlpReceiver


class MemoryLimiter(Part):
    check_interval: Duration
    limit_percentage: Percentage
    spike_limit_percentage: Percentage


class StatusCodes(Part):
    status_codes: list[Literal["OK", "ERROR", "UNSET"]]


class Latency(Part):
    threshold_ms: Count
    upper_threshold_ms: Count = 0


class Probability(Part):
    sampling_percentage: Percentage


class Policy(Part):
    name: str
    type: Literal["status_code", "latency", "probabilistic"]
    status_code: StatusCodes | None = None
    latency: Latency | None = None
    probabilistic: Probability | None = None


class DecisionCache(Part):
    sampled_cache_size: Count = 0
    non_sampled_cache_size: Count = 0


class TailSampling(Part):
    decision_wait: Duration
    num_traces: Count
    expected_new_traces_per_sec: Count
    decision_cache: DecisionCache
    policies: list[Policy]


class Batch(Part):
    send_batch_size: Count
    timeout: Duration


class Processors(Part):
    memory_limiter: MemoryLimiter
    tail_sampling: TailSampling
    batch: Batch


class OtlpHttp(Part):
    endpoint: Annotated[str, Field(pattern=r"^https?://[\w.-]+:[0-9]+$")]


class Exporters(Part):
    otlphttp: OtlpHttp


class TracePipeline(Part):
    receivers: list[str]
    processors: list[str]
    exporters: list[str]


class Pipelines(Part):
    traces: TracePipeline


class Service(Part):
    pipelines: Pipelines


class CollectorConfig(Part):
    receivers: Receivers
    processors: Processors
    exporters: Exporters
    service: Service


@pytest.fixture(scope="module")
def written(pytestconfig: pytest.Config) -> dict[str, Any]:
    text = (pytestconfig.rootpath / "deploy/otel-collector.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.fixture(scope="module")
def config(written: dict[str, Any]) -> CollectorConfig:
    return CollectorConfig.model_validate(written)


def test_a_field_that_a_collector_does_not_know_is_refused(written: dict[str, Any]) -> None:
    wrong = {**written, "processors": {**written["processors"], "tail_sampler": {}}}
    with pytest.raises(ValidationError, match="tail_sampler"):
        CollectorConfig.model_validate(wrong)


def test_the_pipeline_uses_every_part_and_judges_whole_traces_before_it_batches(config: CollectorConfig) -> None:
    traces = config.service.pipelines.traces
    assert set(traces.receivers) == Receivers.model_fields.keys()
    assert traces.processors == ["memory_limiter", "tail_sampling", "batch"]
    assert set(traces.exporters) == Exporters.model_fields.keys()


def test_errors_and_slow_traces_are_kept_and_one_in_a_hundred_of_the_rest(config: CollectorConfig) -> None:
    policies = {policy.type: policy for policy in config.processors.tail_sampling.policies}
    for policy in policies.values():
        assert getattr(policy, policy.type) is not None, f"{policy.name} has the fields of another type"
    assert policies["status_code"].status_code == StatusCodes(status_codes=["ERROR"])
    assert policies["latency"].latency == Latency(threshold_ms=60_000)
    assert policies["probabilistic"].probabilistic == Probability(sampling_percentage=1)


def test_it_remembers_as_many_traces_as_arrive_while_it_waits(config: CollectorConfig) -> None:
    sampling = config.processors.tail_sampling
    minutes = re.fullmatch(r"(\d+)m", sampling.decision_wait)
    assert minutes is not None
    assert sampling.num_traces >= int(minutes[1]) * 60 * sampling.expected_new_traces_per_sec
    assert sampling.decision_cache.sampled_cache_size > sampling.num_traces
    assert sampling.decision_cache.non_sampled_cache_size == 0, "late failures are judged anew"


def test_a_collector_accepts_it(pytestconfig: pytest.Config, config: CollectorConfig) -> None:
    """Jaeger's program is a collector. Where there is none, the classes above are all that has looked at the file."""
    assert config.service
    if program := os.environ.get("JAEGER_BIN"):
        file = f"--config=file:{pytestconfig.rootpath / 'deploy/otel-collector.yaml'}"
        subprocess.run([program, "validate", file], check=True, timeout=60)


def test_the_documents_show_where_it_is(pytestconfig: pytest.Config) -> None:
    page: Path = pytestconfig.rootpath / "docs/tracing.md"
    assert "deploy/otel-collector.yaml" in page.read_text(encoding="utf-8")
