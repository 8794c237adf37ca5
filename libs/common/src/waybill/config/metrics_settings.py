"""Who may read a service's metrics, and how detailed they are."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings

from waybill.config.values import parse_port

PortOrNone = Annotated[int, BeforeValidator(parse_port), Field(ge=0, le=65535)]
"""A port; 0 means that nobody listens."""


class MetricsSettings(BaseSettings):
    """A part of the settings of each service that has metrics."""

    metrics_host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address on which services serve their metrics. It is loopback by default, since metrics tell"
        " strangers how busy you are; a container sets `0.0.0.0`.",
    )
    metrics_tenants: int = Field(
        0,
        ge=0,
        le=1000,
        description="How many tenants get series of their own in the metrics of jobs: the first ones that a process"
        " meets. All others are `other`. With 0, no metric has a tenant. Each one multiplies what Prometheus keeps.",
    )
