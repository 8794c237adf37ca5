"""What the gateway's refusals mean to a job: whether the document is at fault, the gateway is busy, or it is broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from waybill.errors import GatewayRejected, GatewayTimedOut, GatewayUnavailable, TooLarge, WaybillError
from waybill.gateway_client.connections import json_object, say_as, seconds_to_wait
from waybill.messages import msg

R = TypeVar("R", bound=GatewayRejected)

_DEFAULT_WAIT = 5.0
"""Seconds to wait for a busy gateway that does not say how long."""
MOST_FINDINGS = 100
"""The most findings kept in the job's row. A hundred are enough to see what is wrong."""
MOST_FINDINGS_BYTES = 256 * 1024
"""The most bytes of all findings together, because every page that lists the job reads the row."""


def rejection(problem: Mapping[str, Any], status: int) -> GatewayRejected:
    """The rejection that a problem document describes: the document is at fault."""
    return as_rejection(problem, status, GatewayRejected)


def as_rejection(problem: Mapping[str, Any], status: int, kind: type[R]) -> R:
    """The same as an error of a kind of one's own."""
    findings = problem.get("findings")
    detail: dict[str, Any] = {"status": status}
    if isinstance(problem.get("fault"), str):
        detail["fault"] = problem["fault"]
    if isinstance(findings, list):
        detail["findings"] = _first(findings)
        detail["findings_total"] = len(findings)
    return say_as(problem, kind(detail=detail))


def refusal(
    status: int,
    retry_after: str,
    body: bytes,
    rejected: Callable[[Mapping[str, Any], int], WaybillError] = rejection,
) -> WaybillError:
    """The error that an answer other than 200 means. `rejected` makes that of a document at fault."""
    if status in (429, 503):
        # It is busy, not broken: the whole fleet waits, which costs no attempt and is no failure.
        return GatewayUnavailable(msg("gateway_call.busy"), retry_after=seconds_to_wait(retry_after, _DEFAULT_WAIT))
    if status == 413:
        return say_as(json_object(body), TooLarge())
    if status == 408:
        return GatewayTimedOut(msg("gateway_call.slow_document"))
    if 400 <= status < 500:
        return rejected(json_object(body), status)
    return GatewayUnavailable(detail={"status": status})


def dumped(value: Any) -> bytes:
    """Compact JSON, whatever texts are in it."""
    # JSON can have half a surrogate pair, which cannot be encoded; that must not cost us the rest of the text.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _first(findings: list[Any]) -> list[Any]:
    kept: list[Any] = []
    left = MOST_FINDINGS_BYTES
    for finding in findings[:MOST_FINDINGS]:
        left -= len(dumped(finding))
        if left < 0:
            break
        kept.append(finding)
    return kept
