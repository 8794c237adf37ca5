"""How the pipelines call the gateway."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from waybill.config.gateway_secret import GatewaySecretSettings
from waybill.config.values import Bare, Seconds


class GatewayClientSettings(GatewaySecretSettings):
    """Everybody who sends documents to the gateway: API and workers, for each pipeline that does."""

    title: ClassVar[str] = "Calls to the gateway"

    gateway_url: Annotated[str, Bare("GATEWAY_URL")] = Field(
        "http://127.0.0.1:8081", description="The URL of the gateway, which turns documents into XML."
    )
    gateway_timeout: Annotated[Seconds, Bare("GATEWAY_TIMEOUT", unit="ms")] = Field(
        180.0,
        gt=0,
        description="How long one call to the gateway may take before it counts as failed and is retried.",
    )
    gateway_calls: int = Field(
        32,
        ge=0,
        le=100_000,
        description="How many documents may be at the gateway at once, in the whole cluster, for each kind of job that"
        " calls it. Workers set this cap when they start, unless `waybill caps` was ever used for the kind. 32 keep ten"
        " processors busy with two documents waiting for each; raise it together with the gateway. 0 means no cap.",
    )
