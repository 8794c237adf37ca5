"""The gateway's settings."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from waybill.config.archive_limits import ArchiveLimitsSettings
from waybill.config.gateway_secret import GatewaySecretSettings
from waybill.config.mappings_dir import MappingsDirSettings
from waybill.config.metrics_settings import PortOrNone
from waybill.config.settings import cpus
from waybill.config.values import Bare, LocalPath, Port, Seconds


class GatewaySettings(GatewaySecretSettings, MappingsDirSettings, ArchiveLimitsSettings):
    """Settings of the gateway, which needs no database."""

    title: ClassVar[str] = "Gateway"

    gateway_host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address the gateway listens on. It is loopback by default, because only our own services need"
        " to reach it.",
    )
    gateway_port: Port = Field(8081, description="The port of the gateway.")
    gateway_metrics_port: PortOrNone = Field(
        9081,
        description="The port of the gateway's metrics. With 0 they are not served. If it is taken, the gateway says so"
        " and works without.",
    )
    gateway_open: bool = Field(
        False,
        description="Whether the gateway also answers callers that do not prove that they know the secret. Without it,"
        " a gateway without a secret does not start. Set it for experiments on one machine, for tests, and while"
        " services of release 0.1.0 still call this gateway.",
    )
    max_upload_mb: Annotated[int, Bare("MAX_UPLOAD_MB")] = Field(
        50, ge=1, le=2000, description="The largest document that is accepted, in MB of 1024 x 1024 bytes."
    )
    gateway_upload_timeout: Seconds = Field(
        60.0,
        gt=0,
        description="How long a client may take to send a document. Slower clients get a 408, so that they cannot"
        " keep others out.",
    )
    gateway_processes: int = Field(
        default_factory=cpus,
        ge=1,
        le=256,
        json_schema_extra={"default": "number of CPUs"},
        description="How many processes parse documents, one document at a time each.",
    )
    gateway_queue: int = Field(
        # Room for all slots of a worker: after a 503 every worker waits for seconds, in this queue only for a turn.
        default_factory=lambda data: max(16, 8 * data["gateway_processes"]),
        ge=0,
        le=10_000,
        json_schema_extra={"default": "8 x `WAYBILL_GATEWAY_PROCESSES`, at least 16"},
        description="How many more requests are accepted while all processes are busy. Further ones get a 503 with"
        " `Retry-After` at once.",
    )
    gateway_queue_timeout: Seconds = Field(
        30.0,
        gt=0,
        description="How long an accepted request may wait for a process before it gets a 503, too. Together with the"
        " limits on sending and parsing, it stays below the 180 s that our worker waits.",
    )
    gateway_parse_timeout: Seconds = Field(
        60.0,
        gt=0,
        description="How long one document may be parsed, both in wall-clock time and in CPU time. After that, the"
        " process is killed and the document gets a 422.",
    )
    gateway_memory_mb: int = Field(
        1024,
        ge=128,
        le=65_536,
        description="The memory one parsing process may use, in MB. A document that needs more gets a 422. In the worst"
        " case a pod needs this times `WAYBILL_GATEWAY_PROCESSES`.",
    )
    gateway_max_result_mb: int = Field(
        256, ge=1, le=10_000, description="The largest result of one document, in MB. A larger one is a 422."
    )
    gateway_documents_per_process: int = Field(
        200,
        ge=1,
        le=100_000,
        description="After how many documents a process is replaced, so that a parser's memory leaks stay small.",
    )
    gateway_spool_dir: LocalPath = Field(
        default_factory=lambda data: data["home"] / "gateway",
        json_schema_extra={"default": "`gateway` in `WAYBILL_HOME`"},
        description="The folder for documents while they are converted. A request removes its document when it ends;"
        " what a killed gateway left is removed at the next start.",
    )
    gateway_shutdown_grace: Seconds = Field(
        25.0,
        description="How long running requests may continue after SIGTERM. Keep it below the pod's"
        " `terminationGracePeriodSeconds`.",
    )
