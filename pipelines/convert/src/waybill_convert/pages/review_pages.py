"""The document's pages on the review page: their pictures, and a box for each value that was read from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from waybill.web.languages import Language
from waybill_convert.pages.shown_record import ShownCell, ShownRecord
from waybill_documents.geometry import Place

_LONGEST_LABEL = 120


class Mark(NamedTuple):
    """A box on a page, and where it leads."""

    id: str
    first: bool
    look: str
    href: str
    label: str
    left: float
    top: float
    width: float
    height: float


class Leaf(NamedTuple):
    """A page of the document."""

    number: int
    title: str
    source: str
    width: float
    height: float
    across: tuple[int, int, int]
    """Its width in pixels, by scale."""
    boxes: list[Mark]


def leaves(seen: ShownRecord, record: Mapping[str, Any], language: Language, source: str) -> list[Leaf]:
    """The document's pages, each with the boxes of the values that are sent."""
    sizes = record.get("source", {}).get("pages")
    if not isinstance(sizes, list):
        return []
    boxes = marks(seen.cells())
    for id_, places in seen.looked.items():
        label = language.say("convert.review_page.looked", label=id_)
        for index, place in enumerate(places):
            boxes[place.page].append(_mark(id_, place, "looked", f"v-{id_}", label, first=index == 0))
    return [
        Leaf(
            size["number"],
            language.say("convert.review_page.page", number=size["number"], count=len(sizes)),
            f"{source}/{size['number']}",
            size["width"],
            size["height"],
            (round(size["width"]), round(size["width"] * 2), round(size["width"] * 3)),
            boxes[size["number"]],
        )
        for size in sizes
    ]


def marks(cells: Iterable[ShownCell]) -> defaultdict[int, list[Mark]]:
    """The boxes of these values, by page."""
    found: defaultdict[int, list[Mark]] = defaultdict(list)
    for cell in cells:
        look = " ".join(word for word in ("wrong", "doubt") if word in cell.look)
        label = f"{cell.label}: {cell.text}"[:_LONGEST_LABEL]
        for index, place in enumerate(cell.places):
            found[place.page].append(_mark(cell.id, place, look, f"v-{cell.id}", label, first=index == 0))
    return found


def _mark(id_: str, place: Place, look: str, href: str, label: str, *, first: bool) -> Mark:
    left, top, right, bottom = place.box
    return Mark(
        id_,
        first,
        look,
        href,
        label,
        round(left - 1, 1),
        round(top - 1, 1),
        round(right - left + 2, 1),
        round(bottom - top + 2, 1),
    )
