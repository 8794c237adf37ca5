"""The worker's settings: how much it runs at once, what it serves, and how it renews its lease."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from waybill.config.metrics_settings import PortOrNone
from waybill.config.settings import CommonSettings, cpus
from waybill.config.values import Bare, CommaList, Seconds

HOT_CONNECTIONS = 3
"""A worker's connections for the engine. Claims, completions and everything else share two; the third is kept for the
heartbeat, which waits for nobody."""


class WorkerSettings(CommonSettings):
    """The settings of the worker."""

    title: ClassVar[str] = "Worker"

    worker_database_pool_size: int = Field(
        2,
        ge=1,
        le=1000,
        description="How many connections the handlers of one worker process share for their transactions. The process"
        " opens at most four more: three for the engine and one that listens. So all workers together need at most"
        " processes × (4 + this) connections, twice that while they run suspects of a crash alone, and one for the"
        " relay. Raise it if handlers keep transactions open for long.",
    )

    worker_concurrency: Annotated[int, Bare("WORKER_CONCURRENCY")] = Field(
        10,
        ge=1,
        le=1000,
        description="How many jobs one worker process runs at once. Ten suits handlers that mostly wait.",
    )
    worker_processes: int = Field(
        1,
        ge=1,
        le=256,
        description="How many worker processes to start. One by default: in a cluster, replicas do this better.",
    )
    worker_metrics_port: PortOrNone = Field(
        9082,
        description="The port of the worker's metrics and of its probes, `/livez` and `/readyz`. With 0 they are not"
        " served. Several processes of one worker answer together. If it is taken, as by a second worker on the same"
        " machine, the worker says so and works without.",
    )
    worker_queues: CommaList = Field(
        [], description="The queues to serve, separated by commas. Empty: every queue that its kinds use."
    )
    worker_kinds: CommaList = Field(
        [], description="The job kinds to serve, separated by commas. Empty: every kind it has a handler for."
    )
    worker_handlers: CommaList = Field(
        [],
        description="The Python modules that register handlers, separated by commas; imported at start-up. Empty:"
        " those of every installed pipeline, and the selftest's.",
    )
    worker_pool_size: int = Field(
        default_factory=cpus,
        ge=1,
        le=1024,
        json_schema_extra={"default": "number of CPUs"},
        description="How many processes run blocking or CPU-heavy work, so that the loop that renews the lease"
        " never stalls.",
    )
    worker_pod_namespace: Annotated[str | None, Bare("POD_NAMESPACE")] = Field(
        None, description="The namespace of the pod this worker runs in, from the downward API."
    )
    worker_pod_name: Annotated[str | None, Bare("POD_NAME")] = Field(
        None,
        description="The name of that pod, so that its jobs can be released when the pod is gone.",
    )
    worker_pod_uid: Annotated[str | None, Bare("POD_UID")] = Field(
        None, description="The uid of that pod, which tells it from a later pod of the same name."
    )
    lease_ttl: Annotated[Seconds, Bare("LEASE_TTL_MINUTES", unit="m"), Bare("BPC_JOBS_LEASE_SECONDS")] = Field(
        60.0,
        ge=0.5,
        description="How long a worker keeps its jobs without renewing its lease. After a crash, a job waits this long"
        " for its next worker; a worker that is cut off for longer loses its jobs.",
    )
    heartbeat_interval: Annotated[Seconds, Bare("BPC_JOBS_LEASE_RENEW_SECONDS")] = Field(
        20.0,
        gt=0,
        description="How often a worker renews its lease. At most half of `WAYBILL_LEASE_TTL`, so that one lost"
        " heartbeat does not cost the lease.",
    )
    poll_interval: Annotated[
        Seconds, Bare("POLL_INTERVAL", unit="ms"), Bare("BPC_JOBS_POLL_INTERVAL_MS", unit="ms")
    ] = Field(
        5.0,
        gt=0,
        description="How often an idle worker looks for jobs by itself. Notifications wake it sooner; this is the"
        " safety net, and the only way behind PgBouncer.",
    )
    priority_ageing: Seconds = Field(
        60.0,
        ge=0,
        description="After how long without a claim jobs of a lower priority count as one priority higher, and as one"
        " more for each such time, until a worker takes some of them. So low priority is late and never starved. 0 lets"
        " them wait for as long as there are jobs of a higher priority.",
    )
    shutdown_grace: Seconds = Field(
        30.0,
        description="How long running jobs may go on after SIGTERM before they are released to other"
        " workers. Keep it below the pod's `terminationGracePeriodSeconds`.",
    )
    rescue_interval: Seconds = Field(
        10.0,
        gt=0,
        description="How often a worker looks for other workers whose lease has run out, and returns their jobs.",
    )
    breaker_window: Seconds = Field(
        300.0,
        ge=1,
        description="How far back a dependency's circuit breaker looks. Five minutes are long enough to tell an outage"
        " from bad luck, and short enough to forget yesterday's.",
    )
    breaker_failure_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="The share of calls within the window that must have failed for the breaker to open.",
    )
    breaker_min_calls: int = Field(
        10,
        ge=1,
        le=1_000_000,
        description="How many calls there must be within the window before that share means anything.",
    )
    breaker_open: Seconds = Field(
        30.0,
        gt=0,
        description="How long a breaker stays open before the first probes. Doubles each time a probe fails.",
    )
    breaker_open_max: Seconds = Field(
        300.0,
        gt=0,
        description="The longest time it stays open between probes, and so how late the end of an outage is noticed."
        " At least `WAYBILL_BREAKER_OPEN`.",
    )
    breaker_probes: int = Field(
        2,
        ge=1,
        le=1000,
        description="How many jobs of the whole fleet may try a dependency at once while its breaker is half"
        " open, and how many must succeed to close it.",
    )
    breaker_failures_in_a_row: int = Field(
        5,
        ge=1,
        le=1_000_000,
        description="A breaker also opens when so many jobs fail with no success in between. A job that is tried again"
        " after a failure is not counted again: one document that a dependency chokes on must not stop all others.",
    )
    breaker_unreachable_in_a_row: int = Field(
        2,
        ge=1,
        le=1_000_000,
        description="A breaker also opens when so many calls in a row cannot even reach the dependency (refused"
        " connections, unknown names, a full disk). No document is to blame for that, so two are enough.",
    )
    breaker_patience: Seconds = Field(
        43200.0,
        ge=0,
        description="How long a job may wait for dependencies that are away, fail or ask it to wait, at no cost."
        " After that, each further run that fails costs an attempt. Twelve hours: longer than a night, and an outage of"
        " an hour costs no job anything.",
    )

    # Relations between fields are checked on the later field, not in a model validator. That would run only when every
    # field is valid, and a person would learn of the problems one start at a time.
    @field_validator("heartbeat_interval")
    @classmethod
    def _renews_in_time(cls, heartbeat: float, info: ValidationInfo) -> float:
        ttl: Any = info.data.get("lease_ttl")
        if ttl is not None and heartbeat > ttl / 2:
            raise PydanticCustomError(
                "relation", "must be at most half of WAYBILL_LEASE_TTL ({half} s)", {"half": f"{ttl / 2:g}"}
            )
        return heartbeat

    @field_validator("breaker_open_max")
    @classmethod
    def _opens_no_shorter(cls, longest: float, info: ValidationInfo) -> float:
        first: Any = info.data.get("breaker_open")
        if first is not None and longest < first:
            raise PydanticCustomError(
                "relation", "must be at least WAYBILL_BREAKER_OPEN ({first} s)", {"first": f"{first:g}"}
            )
        return longest
