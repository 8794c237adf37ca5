"""Chooses the media type of the answer from the `Accept` header and the kind of document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from waybill.messages import msg
from waybill_gateway.refusals import mapping_missing, not_acceptable

if TYPE_CHECKING:  # the service itself must not import a parser
    from waybill_documents.conversion import Wants

Kind = Literal["pdf", "docx", "xlsx", "text", "json", "xml"]

JSON = "application/json"
XML = "application/xml"
CONVERSION = "application/vnd.waybill.conversion+json"
PNG = "image/png"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Offer:
    """A media type that we can make from a kind of document."""

    kind: Kind
    media_type: str
    wants: Wants
    needs_mapping: bool


# If a client accepts several equally, as with `*/*`, it gets the first.
OFFERS = (
    Offer("pdf", JSON, "json", needs_mapping=False),
    Offer("pdf", XML, "xml", needs_mapping=True),
    Offer("pdf", CONVERSION, "conversion", needs_mapping=True),
    Offer("docx", JSON, "json", needs_mapping=False),
    Offer("xlsx", JSON, "json", needs_mapping=False),
    Offer("xlsx", XML, "xml", needs_mapping=True),
    Offer("xlsx", CONVERSION, "conversion", needs_mapping=True),
    Offer("text", JSON, "json", needs_mapping=False),
    Offer("text", XML, "xml", needs_mapping=True),
    Offer("text", CONVERSION, "conversion", needs_mapping=True),
    Offer("xml", JSON, "json", needs_mapping=False),
    Offer("xml", XML, "xml", needs_mapping=True),
    Offer("xml", CONVERSION, "conversion", needs_mapping=True),
    Offer("json", XML, "xml", needs_mapping=True),
)


class Accept:
    """A parsed `Accept` header. Without one, the client accepts anything."""

    def __init__(self, values: Sequence[str]) -> None:
        ranges = [_range(part) for value in values for part in value.split(",") if part.strip()]
        self._qualities = {each[0]: each[1] for each in ranges if each is not None} if ranges else {"*/*": 1.0}

    def quality(self, media_type: str) -> float:
        """The client's preference for it, from 0 to 1. The most specific range that matches decides."""
        family = media_type.partition("/")[0]
        for fitting in (media_type, f"{family}/*", "*/*"):
            if fitting in self._qualities:
                return self._qualities[fitting]
        return 0.0

    def check_any(self) -> None:
        """Refuse a header that nothing we make could satisfy, before the document is sent."""
        if not any(self.quality(each.media_type) for each in OFFERS):
            raise not_acceptable(msg("gateway.accept", media_types=[JSON, XML, CONVERSION]))

    def choose(self, kind: Kind, *, mapping: bool) -> Offer:
        """The possible offer that the client prefers."""
        offered = [each for each in OFFERS if each.kind == kind]
        accepted = [each for each in offered if self.quality(each.media_type) > 0]
        if not accepted:
            media_types = [each.media_type for each in offered]
            raise not_acceptable(msg("gateway.accept_for", kind=kind.upper(), media_types=media_types))
        possible = [each for each in accepted if mapping or not each.needs_mapping]
        if not possible:
            raise mapping_missing(accepted[0].media_type)
        return max(possible, key=lambda each: self.quality(each.media_type))


def _range(part: str) -> tuple[str, float] | None:
    """A media range and its quality, or None if it is malformed. Parameters other than `q` make no difference here."""
    media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    if media_type.count("/") != 1:
        return None
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value.strip())
            except ValueError:
                return None
            if not 0 <= quality <= 1:
                return None
    return media_type, quality
