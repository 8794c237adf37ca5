"""The way to the gateway: one document there, one conversion back, and every failure by its name in the taxonomy.

The document is streamed from storage straight into the request, so that a worker's memory does not grow with what its
jobs are about. One client serves all jobs of a worker and keeps its connections open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from waybill.errors import GatewayRejected, GatewayTimedOut, GatewayUnavailable, TooLarge, WaybillError
from waybill.http.streamed_form import StreamedForm

CONVERSION = "application/vnd.waybill.conversion+json"
MOST_ANSWER_BYTES = 256 * 1024 * 1024
"""An invoice of 2,000 lines with its provenance is about 5 MB; more than this is no conversion."""
MOST_PROBLEM_BYTES = 8 * 1024 * 1024
MOST_FINDINGS = 100
"""Findings kept in the job's row. What is wrong with the hundredth line is rarely news."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What the gateway made of a document."""

    xml: bytes
    provenance: bytes
    """Everything but the XML, as JSON: data, provenance, checks, stages."""
    pages: int


class Rejected(GatewayRejected):
    """The document is at fault. What the gateway found all the same is kept for the person who looks into it."""

    partial: bytes | None = None

    @classmethod
    def of(cls, problem: Mapping[str, Any], status: int) -> Rejected:
        """What the gateway's problem document says."""
        findings = problem.get("findings")
        detail: dict[str, Any] = {"status": status}
        if isinstance(problem.get("fault"), str):
            detail["fault"] = problem["fault"]
        if isinstance(findings, list):
            detail["findings"] = findings[:MOST_FINDINGS]
            detail["findings_total"] = len(findings)
        said = problem.get("detail")
        rejected = cls(said if isinstance(said, str) else None, detail=detail)
        if isinstance(problem.get("partial"), dict):
            rejected.partial = _dumped(problem["partial"])
        return rejected


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

    async def convert(self, document: AsyncIterator[bytes], size: int, *, mapping: str, job_id: str) -> Conversion:
        """Have a document converted. Raises the taxonomy's error for whatever goes wrong."""
        form = StreamedForm({"mapping": mapping, "pretty": "1", "job_id": job_id}, size)
        headers = {"Accept": CONVERSION, "X-Job-Id": job_id, **form.headers}
        try:
            async with (
                asyncio.timeout(self._timeout),  # httpx times each wait by itself: a trickle would go on for ever
                self._http.stream("POST", "/process", content=form.body(document), headers=headers) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    raise _refusal(response.status_code, response.headers, await _read(response, MOST_PROBLEM_BYTES))
                return _conversion(await _read(response, MOST_ANSWER_BYTES))
        except httpx.ConnectTimeout as error:
            raise GatewayUnavailable("The converter cannot be reached.") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise GatewayTimedOut(f"The converter did not answer within {self._timeout:g} s.") from error
        except httpx.TransportError as error:
            raise GatewayUnavailable("The connection to the converter failed.") from error


async def _read(response: httpx.Response, most: int) -> bytes:
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > most:
            raise GatewayUnavailable(f"The converter's answer is larger than {most // 2**20} MB.")
    return bytes(read)


def _refusal(status: int, headers: httpx.Headers, body: bytes) -> WaybillError:
    if status in (429, 503):
        # Busy, not broken: waiting costs no attempt and is no breaker failure.
        return GatewayUnavailable("The converter is busy.", retry_after=_retry_after(headers))
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return TooLarge()
    if status == httpx.codes.REQUEST_TIMEOUT:
        return GatewayTimedOut("The document reached the converter too slowly.")
    if 400 <= status < 500:
        return Rejected.of(_problem(body), status)
    return GatewayUnavailable(detail={"status": status})


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds to wait. The gateway names them; a proxy in front of it may name none, or a date."""
    said = headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 5.0


def _problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _conversion(body: bytes) -> Conversion:
    answer = _problem(body)
    xml = answer.pop("xml", None)
    if not isinstance(xml, str) or not xml:
        raise GatewayUnavailable("The converter's answer has no XML in it.")
    source = answer.get("source")
    pages = source.get("pages") if isinstance(source, dict) else None
    return Conversion(
        xml.encode(),
        _dumped(answer),
        len(pages) if isinstance(pages, list) else 0,
    )


def _dumped(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
