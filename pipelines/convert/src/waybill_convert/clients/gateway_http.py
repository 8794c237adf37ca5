"""HTTP to the gateway, as all its clients speak it: one kind of connection, bounded answers, tolerant parsing."""

from __future__ import annotations

import json
from typing import Any

import httpx

from waybill.errors import GatewayUnavailable
from waybill.messages import msg


def connect(url: str, timeout: float) -> httpx.AsyncClient:
    """A client that keeps its connections open. The caller closes it."""
    return httpx.AsyncClient(
        base_url=url,
        timeout=httpx.Timeout(timeout, connect=5.0, pool=timeout),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=30.0),
        follow_redirects=False,
        trust_env=False,  # the gateway is ours, so there is no proxy in between
    )


async def read_body(response: httpx.Response, most: int) -> bytes:
    """The whole body; GatewayUnavailable if it has more than `most` bytes."""
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > most:
            raise GatewayUnavailable(msg("convert.gateway.too_large", megabytes=most // 2**20))
    return bytes(read)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in an answer; empty if there is none. A proxy may have answered instead of the gateway."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def seconds_to_wait(header: str, default: float) -> float:
    """The seconds in a `Retry-After` header. A proxy may send none, or a date."""
    return float(header) if header.isascii() and header.isdigit() else default
