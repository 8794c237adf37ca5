"""The way to the gateway: one document there, one conversion back, and every failure by its name in the taxonomy.

The document is streamed from storage straight into the request, so that a worker's memory does not grow with what its
jobs are about. One client serves all jobs of a worker and keeps its connections open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from waybill.errors import GatewayTimedOut, GatewayUnavailable, IoFailure
from waybill.http.streamed_form import StreamedForm
from waybill_convert.clients import answers
from waybill_convert.clients.answers import Conversion
from waybill_convert.clients.source import Source

CONVERSION = "application/vnd.waybill.conversion+json"
MOST_ANSWER_BYTES = 256 * 1024 * 1024
"""An invoice of 2,000 lines with its provenance is about 5 MB; more than this is no conversion."""
MOST_PROBLEM_BYTES = 8 * 1024 * 1024
MOST_AT_HAND = 256 * 1024
"""An answer up to this size is understood in a few milliseconds, where we are. A larger one would stall the loop that
renews leases, also from a thread: decoding JSON gives nobody else a turn."""

Apart = Callable[..., Awaitable[Any]]
"""Runs a function in another process: `JobContext.run_blocking`."""


class Gateway:
    """A client of the gateway, shared by all jobs of a worker."""

    def __init__(self, url: str, timeout: float) -> None:
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(timeout, connect=5.0, pool=timeout),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=30.0),
            follow_redirects=False,
            trust_env=False,  # the gateway is ours: no proxy stands between
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def convert(self, source: Source, *, mapping: str, job_id: str, apart: Apart) -> Conversion:
        """Have a document converted. Raises the taxonomy's error for whatever goes wrong."""
        form = StreamedForm({"mapping": mapping, "pretty": "1", "job_id": job_id}, source.size)
        headers = {"Accept": CONVERSION, "X-Job-Id": job_id, **form.headers}
        try:
            async with (
                asyncio.timeout(self._timeout),  # httpx times each wait by itself: a trickle would go on for ever
                self._http.stream("POST", "/process", content=form.body(source.read()), headers=headers) as response,
            ):
                status, retry_after = response.status_code, response.headers.get("Retry-After", "")
                body = await _read(response, MOST_ANSWER_BYTES if status == httpx.codes.OK else MOST_PROBLEM_BYTES)
        except httpx.ConnectTimeout as error:
            raise GatewayUnavailable("The converter cannot be reached.") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            if source.was_slow:
                raise _slow_storage() from error
            raise GatewayTimedOut(f"The converter did not answer within {self._timeout:g} s.") from error
        except httpx.TransportError as error:
            if source.was_slow:  # the gateway hangs up on those who keep it waiting
                raise _slow_storage() from error
            raise GatewayUnavailable("The connection to the converter failed.") from error
        if status == httpx.codes.REQUEST_TIMEOUT and source.was_slow:
            raise _slow_storage()
        here = len(body) <= MOST_AT_HAND
        if status == httpx.codes.OK:
            found: Conversion = answers.conversion(body) if here else await apart(answers.conversion, body)
            return found
        said = (status, retry_after, body)
        raise answers.refusal(*said) if here else await apart(answers.refusal, *said)


def _slow_storage() -> IoFailure:
    return IoFailure("The storage gave us the document too slowly. We try again by ourselves.")


async def _read(response: httpx.Response, most: int) -> bytes:
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > most:
            raise GatewayUnavailable(f"The converter's answer is larger than {most // 2**20} MB.")
    return bytes(read)
