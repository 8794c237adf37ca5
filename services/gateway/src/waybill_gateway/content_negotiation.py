"""Which conversion a request wants: its `Accept` header against the few that exist for what it sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from waybill_gateway.refusals import mapping_missing, not_acceptable

if TYPE_CHECKING:  # the service itself never loads a parser
    from waybill_documents.conversion import Wants

Kind = Literal["pdf", "json"]

JSON = "application/json"
XML = "application/xml"
CONVERSION = "application/vnd.waybill.conversion+json"
PNG = "image/png"


@dataclass(frozen=True, slots=True)
class Conversion:
    """One row of the contract."""

    kind: Kind
    media_type: str
    wants: Wants
    needs_mapping: bool


# When a client likes several equally well, as with `*/*`, the first one it is.
CONVERSIONS = (
    Conversion("pdf", JSON, "json", needs_mapping=False),
    Conversion("pdf", XML, "xml", needs_mapping=True),
    Conversion("pdf", CONVERSION, "conversion", needs_mapping=True),
    Conversion("json", XML, "xml", needs_mapping=True),
)


class Accept:
    """A parsed `Accept` header. Without one, anything will do."""

    def __init__(self, values: Sequence[str]) -> None:
        ranges = [_range(part) for value in values for part in value.split(",") if part.strip()]
        self._qualities = {each[0]: each[1] for each in ranges if each is not None} if ranges else {"*/*": 1.0}

    def quality(self, media_type: str) -> float:
        """How well the client likes it, from 0 to 1; the range that fits most closely decides."""
        family = media_type.partition("/")[0]
        for fitting in (media_type, f"{family}/*", "*/*"):
            if fitting in self._qualities:
                return self._qualities[fitting]
        return 0.0

    def check_any(self) -> None:
        """Refuse what no document could satisfy, before one is sent."""
        if not any(self.quality(each.media_type) for each in CONVERSIONS):
            raise not_acceptable(f"There is nothing here but {', '.join((JSON, XML, CONVERSION))}.")

    def choose(self, kind: Kind, *, mapping: bool) -> Conversion:
        """The conversion the client likes best among those that are possible."""
        offered = [each for each in CONVERSIONS if each.kind == kind]
        liked = [each for each in offered if self.quality(each.media_type) > 0]
        if not liked:
            names = ", ".join(each.media_type for each in offered)
            raise not_acceptable(f"A {kind.upper()} document can be had as {names}.")
        possible = [each for each in liked if mapping or not each.needs_mapping]
        if not possible:
            raise mapping_missing(liked[0].media_type)
        return max(possible, key=lambda each: self.quality(each.media_type))


def _range(part: str) -> tuple[str, float] | None:
    """A media range and its quality; None for what is not one. Parameters other than `q` tell nothing apart here."""
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
