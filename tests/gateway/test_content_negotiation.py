"""`Accept` chooses the conversion, as the contract's table says, row by row."""

from __future__ import annotations

import pytest

from waybill_documents.conversion import MEDIA_TYPES
from waybill_gateway.content_negotiation import CONVERSION, JSON, OFFERS, XML, Accept, Kind
from waybill_gateway.refusals import Refusal


def chosen(kind: Kind, accept: str | None, *, mapping: bool) -> str | int:
    """The media type that is answered with, or the status of the refusal."""
    try:
        wanted = Accept([] if accept is None else [accept])
        wanted.check_any()
        return wanted.choose(kind, mapping=mapping).media_type
    except Refusal as refusal:
        return refusal.status


@pytest.mark.parametrize(
    ("kind", "accept", "without_mapping", "with_mapping"),
    [
        ("pdf", JSON, JSON, JSON),
        ("pdf", XML, 400, XML),
        ("pdf", CONVERSION, 400, CONVERSION),
        ("json", XML, 400, XML),
        ("json", JSON, 406, 406),
        ("json", CONVERSION, 406, 406),
        ("docx", JSON, JSON, JSON),
        ("docx", XML, 406, 406),
        ("xlsx", JSON, JSON, JSON),
        ("xlsx", "*/*", JSON, JSON),
        ("xlsx", XML, 400, XML),
        ("xlsx", CONVERSION, 400, CONVERSION),
        ("text", JSON, JSON, JSON),
        ("text", CONVERSION, 400, CONVERSION),
        ("docx", CONVERSION, 406, 406),
        ("xml", JSON, JSON, JSON),
        ("xml", XML, 400, XML),
        ("xml", CONVERSION, 400, CONVERSION),
        ("pdf", "text/html", 406, 406),
        ("pdf", "text/xml", 406, 406),
        ("json", "image/png", 406, 406),
    ],
)
def test_every_row_of_the_table(kind: Kind, accept: str, without_mapping: str | int, with_mapping: str | int) -> None:
    assert chosen(kind, accept, mapping=False) == without_mapping
    assert chosen(kind, accept, mapping=True) == with_mapping


@pytest.mark.parametrize("accept", [None, "", "*/*", "application/*", "text/html, */*;q=0.1", " , */* ,"])
def test_who_takes_anything_gets_json_for_a_pdf_and_xml_for_json(accept: str | None) -> None:
    assert chosen("pdf", accept, mapping=True) == JSON
    assert chosen("pdf", accept, mapping=False) == JSON
    assert chosen("json", accept, mapping=True) == XML
    assert chosen("json", accept, mapping=False) == 400


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (f"{JSON};q=0.5, {XML}", XML),
        (f"{JSON};q=0.5, {XML};q=0.4", JSON),
        (f"{XML};q=0.001, {JSON};q=0", XML),
        (f"*/*, {JSON};q=0", XML),
        (f"*/*;q=0, {CONVERSION}", CONVERSION),
        (f"application/*;q=0.2, {CONVERSION};q=0.9", CONVERSION),
        (f"{JSON};q=0", 406),
        ("*/*;q=0", 406),
        ("Application/XML; Q=1.0; charset=utf-8", XML),
        (f"{XML};level=1;q=0.3, {JSON};q=0.2", XML),
        (f"{JSON};q=high, {XML};q=0.1", XML),
        (f"{JSON};q=7", 406),
        (f"{JSON};q=nan", 406),
        ("application", 406),
        ("a/b/c", 406),
        (",".join(["text/html"] * 5000), 406),
    ],
)
def test_qualities_decide(accept: str, expected: str | int) -> None:
    assert chosen("pdf", accept, mapping=True) == expected


def test_without_a_mapping_the_best_that_needs_none_is_chosen() -> None:
    assert chosen("pdf", f"{XML}, {JSON};q=0.1", mapping=False) == JSON


def test_several_headers_count_as_one() -> None:
    assert Accept([f"{JSON};q=0.1", XML]).choose("pdf", mapping=True).media_type == XML


def test_media_types_are_those_of_the_answers() -> None:
    assert {each.wants: each.media_type for each in OFFERS} == MEDIA_TYPES
