"""The operator's settings. What a pool is like is said by its WorkerPool, and by the template that the chart mounts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from waybill.config.metrics_settings import PortOrNone
from waybill.config.settings import CommonSettings
from waybill.config.values import LocalPath, Seconds


class OperatorSettings(CommonSettings):
    """What the operator understands: where its configuration is, and how often it looks."""

    title: ClassVar[str] = "Operator"

    operator_name_prefix: str = Field(
        "waybill",
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        description="What the names of its objects begin with: Deployments `PREFIX-worker…`, the Lease"
        " `PREFIX-operator`. The chart sets it. Two operators in one namespace need different ones.",
    )
    operator_config_dir: LocalPath = Field(
        Path("/etc/waybill/operator"),
        description="The folder with `worker-template.yaml`, the pod template of all pools, and `default-pool.yaml`,"
        " the spec of the pool `default`. They are read again when they change.",
    )
    operator_metrics_api_port: PortOrNone = Field(
        8443,
        description="The port of the external metrics API, which the API server asks for autoscalers. With 0 it is not"
        " served.",
    )
    operator_metrics_api_host: str = Field(
        "0.0.0.0",  # noqa: S104 - only the API server gets more than a list of what there is
        min_length=1,
        description="The address of the external metrics API. `::` in a cluster with IPv6 only.",
    )
    operator_tls_dir: LocalPath = Field(
        Path("/etc/waybill/tls"),
        description="The folder with `tls.crt` and `tls.key` of the external metrics API. They are read again when they"
        " change.",
    )
    operator_metrics_port: PortOrNone = Field(
        9083,
        description="The port of the operator's own metrics and of its probes, `/livez` and `/readyz`. With 0 they are"
        " not served.",
    )
    operator_figures_interval: Seconds = Field(
        5.0,
        ge=1,
        description="How often the backlog of every pool is read, and so how old an answer of the external metrics API"
        " may be. If reading takes long, it is read less often: it never takes more than a fifth of the time.",
    )
    operator_status_interval: Seconds = Field(
        15.0,
        ge=1,
        description="How often the figures in a pool's status may change. Conditions change at once.",
    )
