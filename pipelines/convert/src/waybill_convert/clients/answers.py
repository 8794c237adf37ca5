"""Decodes the gateway's answers. Answers can be large, so these functions can also run in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from waybill.errors import GatewayRejected, GatewayUnavailable, WaybillError
from waybill.gateway_client import refusals
from waybill.gateway_client.connections import json_object
from waybill.gateway_client.refusals import as_rejection, dumped
from waybill.messages import msg
from waybill_convert.amounts import amounts_of
from waybill_convert.doubts import NEVER, Doubts, KnownThresholds, look


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
    amounts: dict[str, Any] | None = None
    """Of the document as a whole, for other pipelines."""


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
        recognition = dumped({"title": title, **why}).decode() if isinstance(why, dict) else None
        return cls(str(name), sha256 if isinstance(sha256, str) else None, recognition)


class Rejected(GatewayRejected):
    """The document is at fault. What the gateway found is kept for the person who looks into it."""

    partial: bytes | None = None
    used: UsedMapping | None = None
    """The mapping that found it."""

    @classmethod
    def of(cls, problem: Mapping[str, Any], status: int) -> Rejected:
        """The rejection that the gateway's problem document describes."""
        rejected = as_rejection(problem, status, cls)
        if isinstance(problem.get("partial"), dict):
            rejected.partial = dumped(problem["partial"])
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
    return _converted(answer, xml, thresholds)


def stored_conversion(xml: bytes, record: bytes, thresholds: KnownThresholds = NEVER) -> ConvertedDocument:
    """The conversion that was stored like this. Raises GatewayUnavailable if it is damaged."""
    try:
        return _converted(json_object(record), xml.decode(), thresholds)
    except UnicodeDecodeError as error:
        raise GatewayUnavailable(msg("convert.gateway.malformed")) from error


def _converted(answer: dict[str, Any], xml: str, thresholds: KnownThresholds) -> ConvertedDocument:
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
    return ConvertedDocument(encoded, root, dumped(answer), count, UsedMapping.of(answer), doubts, amounts_of(answer))


def refusal(status: int, retry_after: str, body: bytes) -> WaybillError:
    """The error that any other answer means."""
    return refusals.refusal(status, retry_after, body, Rejected.of)


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
