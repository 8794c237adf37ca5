"""Whether this process and the gateway trust each other, for readiness and `waybill selftest`."""

from __future__ import annotations

import asyncio

import httpx

from waybill.config import load
from waybill.errors import GatewayMistrusted, GatewayUnavailable
from waybill.gateway_client.connections import GatewayConnections
from waybill_convert.settings import ConvertSettings


async def check_gateway(settings: ConvertSettings | None = None, *, patience: float = 5.0) -> str | None:
    """Why the gateway cannot be used although it runs, in a sentence. An outage is the breaker's business."""
    settings = settings or load(ConvertSettings)
    connections = GatewayConnections(settings.gateway_url, patience, settings.gateway_secrets)
    try:
        async with asyncio.timeout(patience):
            await connections.introduce()
    except GatewayMistrusted as mistrusted:
        return mistrusted.message
    except (GatewayUnavailable, httpx.HTTPError, TimeoutError):
        return None
    finally:
        await connections.close()
    return None
