"""Decodes the gateway's answers. Answers can be large, so these functions can also run in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from waybill.errors import GatewayRejected, GatewayTimedOut, GatewayUnavailable, TooLarge, WaybillError
from waybill.gateway_client.connections import json_object, say_as, seconds_to_wait
from waybill.messages import msg
from waybill_convert.doubts import NEVER, Doubts, KnownThresholds, look

_DEFAULT_WAIT = 5.0
"""Seconds to wait for a busy gateway that does not say how long."""
MOST_FINDINGS = 100
"""The most findings kept in the job's row. A hundred are enough to see what is wrong."""
MOST_FINDINGS_BYTES = 256 * 1024
"""The most bytes of all findings together, because every page that lists the job reads the row."""


@dataclass(frozen=True, slots=True)
class ConvertedDocument:
    """What the gateway made of a document."""

    xml: bytes
    root: str
    """The name of the XML's outermost element, without its namespace."""
    provenance: bytes
    """Everything but the XML, as JSON: data, provenance, checks, stages."""
    pages: int
    used: UsedMapping
    doubts: Doubts | None = None
    """Why a person has to look first; None if nobody has to."""


@dataclass(frozen=True, slots=True)
class UsedMapping:
    """The mapping that made a record, as the gateway says."""

    name: str
    sha256: str | None
    recognition: str | None
    """If the document chose it: why, as JSON."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> UsedMapping:
        """The mapping that a record names."""
        given, why = record.get("mapping"), record.get("recognition")
        mapping = given if isinstance(given, dict) else {}
        name, sha256, title = (mapping.get(member) for member in ("name", "sha256", "title"))
        recognition = _dumped({"title": title, **why}).decode() if isinstance(why, dict) else None
        return cls(str(name), sha256 if isinstance(sha256, str) else None, recognition)


class Rejected(GatewayRejected):
    """The document is at fault. What the gateway found is kept for the person who looks into it."""

    partial: bytes | None = None
    used: UsedMapping | None = None
    """The mapping that found it."""

    @classmethod
    def of(cls, problem: Mapping[str, Any], status: int) -> Rejected:
        """The rejection that the gateway's problem document describes."""
        findings = problem.get("findings")
        detail: dict[str, Any] = {"status": status}
        if isinstance(problem.get("fault"), str):
            detail["fault"] = problem["fault"]
        if isinstance(findings, list):
            detail["findings"] = _first(findings)
            detail["findings_total"] = len(findings)
        rejected = say_as(problem, cls(detail=detail))
        if isinstance(problem.get("partial"), dict):
            rejected.partial = _dumped(problem["partial"])
            rejected.used = UsedMapping.of(problem["partial"])
        return rejected


def conversion(body: bytes, thresholds: KnownThresholds = NEVER) -> ConvertedDocument:
    """The conversion in a 200 answer. Raises GatewayUnavailable if there is none.

    What is below the threshold is also named in its provenance.
    """
    answer = json_object(body)
    xml = answer.pop("xml", None)
    if not isinstance(xml, str) or not xml:
        raise GatewayUnavailable(msg("convert.gateway.no_xml"))
    source = answer.get("source")
    pages = source.get("pages", source.get("sheets")) if isinstance(source, dict) else None
    try:
        encoded = xml.encode()
        root = _root(encoded)
    except (UnicodeEncodeError, ExpatError) as error:
        raise GatewayUnavailable(msg("convert.gateway.malformed")) from error
    try:
        doubts = look(answer, thresholds)
    except (KeyError, TypeError, AttributeError) as error:
        raise GatewayUnavailable(msg("convert.gateway.no_confidence")) from error
    count = len(pages) if isinstance(pages, list) else 0
    return ConvertedDocument(encoded, root, _dumped(answer), count, UsedMapping.of(answer), doubts)


def refusal(status: int, retry_after: str, body: bytes) -> WaybillError:
    """The error that any other answer means."""
    if status in (429, 503):
        # It is busy, not broken: the whole fleet waits, which costs no attempt and is no failure.
        return GatewayUnavailable(msg("gateway_call.busy"), retry_after=seconds_to_wait(retry_after, _DEFAULT_WAIT))
    if status == 413:
        return say_as(json_object(body), TooLarge())
    if status == 408:
        return GatewayTimedOut(msg("gateway_call.slow_document"))
    if 400 <= status < 500:
        return Rejected.of(json_object(body), status)
    return GatewayUnavailable(detail={"status": status})


def _root(xml: bytes) -> str:
    """The name of the outermost element. Raises ExpatError if the XML is not well-formed."""
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
    # JSON can have half a surrogate pair, which cannot be encoded; that must not cost us the rest of the text.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
