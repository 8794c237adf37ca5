"""What the gateway answered, understood. Answers can be large: these functions run as well in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from waybill.errors import GatewayRejected, GatewayTimedOut, GatewayUnavailable, TooLarge, WaybillError

MOST_FINDINGS = 100
"""Findings kept in the job's row. What is wrong with the hundredth line is rarely news."""
MOST_FINDINGS_BYTES = 256 * 1024
"""And how large all of them may be: the row is read by every page that lists the job."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What the gateway made of a document."""

    xml: bytes
    root: str
    """The XML's outermost element, without its namespace."""
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
            detail["findings"] = _first(findings)
            detail["findings_total"] = len(findings)
        said = problem.get("detail")
        rejected = cls(said if isinstance(said, str) else None, detail=detail)
        if isinstance(problem.get("partial"), dict):
            rejected.partial = _dumped(problem["partial"])
        return rejected


def conversion(body: bytes) -> Conversion:
    """The conversion in a 200; GatewayUnavailable if there is none."""
    answer = _object(body)
    xml = answer.pop("xml", None)
    if not isinstance(xml, str) or not xml:
        raise GatewayUnavailable("The converter's answer has no XML in it.")
    source = answer.get("source")
    pages = source.get("pages") if isinstance(source, dict) else None
    try:
        encoded = xml.encode()
        root = _root(encoded)
    except (UnicodeEncodeError, ExpatError) as error:
        raise GatewayUnavailable("The converter's XML is not well-formed.") from error
    return Conversion(encoded, root, _dumped(answer), len(pages) if isinstance(pages, list) else 0)


def refusal(status: int, retry_after: str, body: bytes) -> WaybillError:
    """What any other answer means."""
    if status in (429, 503):
        # Busy, not broken: waiting costs no attempt and is no breaker failure.
        return GatewayUnavailable("The converter is busy.", retry_after=_seconds(retry_after))
    if status == 413:
        return TooLarge()
    if status == 408:
        return GatewayTimedOut("The document reached the converter too slowly.")
    if 400 <= status < 500:
        return Rejected.of(_object(body), status)
    return GatewayUnavailable(detail={"status": status})


def _seconds(said: str) -> float:
    """Seconds to wait. The gateway names them; a proxy in front of it may name none, or a date."""
    return float(said) if said.isascii() and said.isdigit() else 5.0


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _root(xml: bytes) -> str:
    """The name of its outermost element; an ExpatError if it is not well-formed."""
    roots: list[str] = []
    parser = ParserCreate(namespace_separator=" ")

    def first(name: str, _attributes: dict[str, str]) -> None:
        roots.append(name)
        parser.StartElementHandler = None

    parser.StartElementHandler = first
    parser.Parse(xml, True)
    return roots[0].rpartition(" ")[2]


def _first(findings: list[Any]) -> list[Any]:
    kept: list[Any] = []
    left = MOST_FINDINGS_BYTES
    for finding in findings[:MOST_FINDINGS]:
        left -= len(_dumped(finding))
        if left < 0:
            break
        kept.append(finding)
    return kept


def _dumped(value: Any) -> bytes:
    # JSON may spell halves of characters, which no encoding knows; one in a text is no reason to lose the rest.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
