"""HTTP to the gateway, as all its clients speak it: one kind of connection, bounded answers, tolerant parsing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx

from waybill.errors import GatewayUnavailable, WaybillError
from waybill.messages import msg

E = TypeVar("E", bound=WaybillError)

MOST_PARAMS_CHARACTERS = 16 * 1024
"""The most that a message's parameters may take in the job's row. A longer one is stored as its sentence alone."""


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


def say_as(problem: Mapping[str, Any], error: E) -> E:
    """The error, saying what the gateway's problem document says: its sentence, and the key and parameters of that.

    The key is one of the platform's or of the document library's catalogues. An answer without a sentence, such as a
    proxy's, leaves the error as it is.
    """
    said, key, params = (problem.get(name) for name in ("detail", "key", "params"))
    if not isinstance(said, str):
        return error
    error.message, error.args = said, (said,)
    error.key, error.params = None, {}
    if isinstance(key, str) and isinstance(params, dict) and len(json.dumps(params)) <= MOST_PARAMS_CHARACTERS:
        error.key, error.params = key, params
    return error


def seconds_to_wait(header: str, default: float) -> float:
    """The seconds in a `Retry-After` header. A proxy may send none, or a date."""
    return float(header) if header.isascii() and header.isdigit() else default
