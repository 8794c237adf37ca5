"""The spec of a WorkerPool as the operator understands it. The CRD in the chart says the same to the API server.

The API server refuses most bad specs and fills in the defaults. They are checked here again, because the CRD in a
cluster may be older or newer than the operator.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from waybill_operator.pools.overrides import PodOverrides

MANAGED_ENV = (
    "WAYBILL_WORKER_QUEUES",
    "WAYBILL_WORKER_KINDS",
    "WAYBILL_WORKER_CONCURRENCY",
    "WAYBILL_WORKER_PROCESSES",
    "POD_NAME",
    "POD_NAMESPACE",
    "POD_UID",
)
"""Variables that the operator sets from other fields, or that leases depend on."""

_PERCENT = re.compile(r"(?:100|[1-9]?[0-9])%")

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""Of a queue or a kind, as the engine has them."""


class _Part(BaseModel):
    # A field that a later CRD has is no mistake of ours to refuse.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Autoscaling(_Part):
    source: Literal["builtin", "cpu", "external", "none"] = "builtin"
    min_replicas: int = Field(1, ge=1, le=10_000)
    max_replicas: int = Field(10, ge=1, le=10_000)
    drain_target_seconds: int = Field(60, ge=1, le=86_400)
    cpu_utilization: int = Field(80, ge=1, le=100)
    behavior: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_a_range(self) -> Autoscaling:
        if self.min_replicas > self.max_replicas:
            raise ValueError("minReplicas must not be more than maxReplicas")
        return self


def _check_budget(value: int | str) -> int | str:
    if isinstance(value, int) and value < 0:
        raise ValueError("must not be negative")
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        raise ValueError("must be a number or a percentage such as 10%")
    return value


class DisruptionBudget(_Part):
    # A switch, because `null` cannot be applied: a patch takes it for "remove this", and the default comes back.
    enabled: bool = True
    max_unavailable: Annotated[int | str, AfterValidator(_check_budget)] = 1


class EnvVar(_Part):
    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(min_length=1, max_length=200, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")

    @model_validator(mode="after")
    def _is_not_managed(self) -> EnvVar:
        if self.name in MANAGED_ENV:
            raise ValueError(f"{self.name} is set by the operator from other fields of the pool")
        return self


class Resources(_Part):
    model_config = ConfigDict(extra="allow", frozen=True)

    limits: dict[str, int | float | str] = Field(default_factory=dict)
    requests: dict[str, int | float | str] = Field(default_factory=dict)


class WorkerPoolSpec(_Part):
    queues: list[Name] = Field(default_factory=list, max_length=100)
    kinds: list[Name] = Field(default_factory=list, max_length=100)
    concurrency: int = Field(10, ge=1, le=1000)
    processes: int = Field(1, ge=1, le=256)
    replicas: int = Field(1, ge=0, le=10_000)
    autoscaling: Autoscaling = Field(default_factory=Autoscaling)
    resources: Resources = Field(default_factory=Resources)
    env: list[EnvVar] = Field(default_factory=list, max_length=200)
    pod_overrides: PodOverrides = Field(default_factory=PodOverrides)
    disruption_budget: DisruptionBudget = Field(default_factory=DisruptionBudget)

    @property
    def slots(self) -> int:
        """Jobs that one worker pod runs at once."""
        return self.concurrency * self.processes


class InvalidSpec(Exception):
    """A sentence for the person who wrote the spec."""


def parse(spec: object) -> WorkerPoolSpec:
    try:
        return WorkerPoolSpec.model_validate(spec)
    except ValidationError as error:
        raise InvalidSpec("; ".join(_sentence(detail) for detail in error.errors(include_url=False))) from error


def _sentence(detail: Any) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    what = str(detail["msg"]).removeprefix("Value error, ")
    return f"spec{where}: {what}"
