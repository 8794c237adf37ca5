"""Numbers become shapes that a browser can draw, at any width and in any colours."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from markupsafe import Markup

from waybill_api.ops import plots
from waybill_api.ops.plots import HEIGHT, WIDTH, Point

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(min_value=0, max_value=1e9, allow_nan=False)
some_points = st.lists(st.tuples(st.floats(0, 1), numbers, numbers), max_size=80).map(
    lambda rows: [Point(x, (low, high), "a <hint>") for x, low, high in sorted(rows)]
)


def shapes(svg: Markup, name: str) -> list[etree._Element]:
    drawing = etree.fromstring(str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return list(drawing.iter(f"{SVG}{name}"))


def corners(shape: etree._Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, _, y in (pair.partition(",") for pair in shape.get("points", "").split())]


@given(points=some_points)
def test_whatever_the_numbers_everything_drawn_is_inside(points: list[Point]) -> None:
    drawing = plots.areas(("running", "queued"), points, 'A "title" <b>')
    assert drawing.top >= max((sum(point.values) for point in points), default=0)
    for shape in [*shapes(drawing.svg, "polygon"), *shapes(drawing.svg, "polyline")]:
        assert all(0 <= x <= WIDTH and -0.01 <= y <= HEIGHT for x, y in corners(shape))
    bars = plots.bars(("succeeded", "failed"), points, 1 / 60, "title")
    for bar in shapes(bars.svg, "rect"):
        top, height = float(bar.get("y", "")), float(bar.get("height", ""))
        assert top >= -0.02
        assert top + height <= HEIGHT + 0.02


def test_layers_stand_on_each_other_and_the_title_is_text() -> None:
    points = [Point(0.0, (10, 30)), Point(0.01, (20, 30))]
    drawing = plots.areas(("running", "queued"), points, "5 < 6")
    assert drawing.top == 50
    lower, upper = shapes(drawing.svg, "polyline")
    assert [y for _, y in corners(lower)] == [80, 60]
    assert [y for _, y in corners(upper)] == [20, 0]
    (title,) = shapes(drawing.svg, "title")
    assert title.text == "5 < 6"
    assert 'role="img"' in drawing.svg
    assert "style" not in drawing.svg, "the content policy allows none"


def test_a_time_without_samples_is_a_gap_and_not_a_line() -> None:
    points = [Point(x / 100, (1,)) for x in (*range(10), *range(50, 60))]
    assert len(shapes(plots.areas(("queued",), points, "").svg, "polyline")) == 2
    assert len(shapes(plots.line("queued", points, "").svg, "polyline")) == 2


def test_bars_say_what_they_are_and_nothing_is_drawn_for_nothing() -> None:
    drawing = plots.bars(("succeeded", "failed"), [Point(0.0, (3, 0), "11:00 <3>"), Point(0.5, (0, 0))], 0.1, "t")
    assert len(shapes(drawing.svg, "rect")) == 1
    assert [each.text for each in shapes(drawing.svg, "title")] == ["t", "11:00 <3>"]


def test_the_shortest_span_is_seen_and_the_last_one_does_not_stick_out() -> None:
    (bar,) = shapes(plots.span(1.0, 1.0, "run"), "rect")
    assert float(bar.get("width", "")) >= 2
    assert float(bar.get("x", "")) + float(bar.get("width", "")) <= WIDTH


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (1, 1), (1.5, 2), (2, 2), (7, 10), (11, 20), (480, 500), (1001, 2000)]
)
def test_the_axis_ends_at_a_number_that_a_person_can_halve(most: float, top: float) -> None:
    assert plots.line("queued", [Point(0.0, (most,))], "").top == top


def test_no_drawing_contains_a_number_that_is_none() -> None:
    svg = plots.areas(("queued",), [], "").svg
    assert not re.search(r"nan|inf", svg)
    assert not list(pairwise(shapes(svg, "polygon")))
