"""HTTP to the gateway, as all its clients speak it: proven on both sides, bounded answers, tolerant parsing."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

import httpx

from waybill.errors import GatewayMistrusted, GatewayUnavailable, WaybillError
from waybill.http.proofs import ANSWER_HEADER, Asked, ask
from waybill.messages import msg
from waybill.telemetry import spans
from waybill.telemetry.spans import Span

E = TypeVar("E", bound=WaybillError)

_MOST_REFUSAL_BYTES = 64 * 1024

MOST_PARAMS_CHARACTERS = 16 * 1024
"""The most that a message's parameters may take in the job's row. A longer one is stored as its sentence alone."""


_TRUSTED_FOR = 30.0
"""Seconds for which we send documents to a gateway that has proven itself, without asking it again first."""


class GatewayConnections:
    """Connections to the gateway that are kept open. The owner closes them.

    With a secret, each request proves that we know it, and no answer is used that does not prove the same. Documents
    are confidential: the gateway must have proven itself a moment ago before it gets one.
    """

    def __init__(self, url: str, timeout: float, secrets: Sequence[bytes] = ()) -> None:
        self._secret = secrets[0] if secrets else None
        self._trusted_until = 0.0
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(timeout, connect=5.0, pool=timeout),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=30.0),
            follow_redirects=False,
            trust_env=False,  # the gateway is ours, so there is no proxy in between
        )

    async def close(self) -> None:
        await self._http.aclose()

    def span(self, path: str) -> AbstractContextManager[Span]:
        """A span around a call, which ends with the error that the caller makes of a failure."""
        place = {"server.address": self._http.base_url.host, "url.path": path, "http.request.method": "POST"}
        return spans.span(f"POST {path}", kind="client", attributes=place)

    async def introduce(self) -> None:
        """Have the gateway prove that it knows the secret. GatewayMistrusted if it does not, or refuses ours."""
        async with self._ask("GET", "/mappings") as response:
            await response.aread()

    @asynccontextmanager
    async def post(
        self, path: str, *, content: AsyncIterator[bytes], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """The gateway's answer, which has been proven. GatewayMistrusted if it has not."""
        if self._secret is not None and time.monotonic() > self._trusted_until:
            await self.introduce()
        async with self._ask("POST", path, content=content, headers=headers) as response:
            yield response

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        path: str,
        *,
        content: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        url = self._http.base_url.join(path.lstrip("/"))
        asked, proof = (None, {}) if self._secret is None else ask(self._secret, method, url.raw_path.decode())
        try:
            async with self._http.stream(
                method, url, content=content, headers={**(headers or {}), **spans.carrier(), **proof}
            ) as response:
                await _check(asked, response)
                yield response
        except (httpx.HTTPError, GatewayMistrusted):
            self._trusted_until = 0.0  # somebody else may answer there next time
            raise
        self._trusted_until = time.monotonic() + _TRUSTED_FOR


async def _check(asked: Asked | None, response: httpx.Response) -> None:
    """GatewayMistrusted, unless the answer is one that we can use."""
    status = response.status_code
    proven = asked is None or asked.is_answered(status, response.headers.get(ANSWER_HEADER))
    if not proven and status >= 500:  # a proxy in between says that the gateway is away
        raise GatewayUnavailable(detail={"status": status})
    if status == httpx.codes.UNAUTHORIZED:
        problem = json_object(await read_body(response, _MOST_REFUSAL_BYTES))
        raise GatewayMistrusted(msg("gateway_call.secret_refused", why=str(problem.get("detail", ""))[:300]))
    if not proven:
        raise GatewayMistrusted(msg("gateway_call.unproven"))


async def read_body(response: httpx.Response, most: int) -> bytes:
    """The whole body; GatewayUnavailable if it has more than `most` bytes."""
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > most:
            raise GatewayUnavailable(msg("gateway_call.too_large", megabytes=most // 2**20))
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
