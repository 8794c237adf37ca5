"""Plots as SVG, drawn on the server: pure functions from numbers to shapes.

A drawing is stretched to whatever width there is, so it contains no text: axes and legends are HTML around it. Colours
are classes, because the content policy allows no styles in the page, and so that they follow light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 600, 100

_GAP = 0.05
"""An area is interrupted where so much of the width has no point: nobody looked in that time."""


@dataclass(frozen=True, slots=True)
class Drawing:
    svg: Markup
    top: float
    """The number at the upper edge."""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    """Between 0 at the left and 1 at the right."""
    values: Sequence[float]
    """One for each layer, from the bottom up."""
    says: str = ""
    """What a pointer over it shows."""


def areas(layers: Sequence[str], points: Sequence[Point], title: str) -> Drawing:
    """Layers on top of each other, as areas. `layers` are their classes, from the bottom up."""
    top = _round_up(max((sum(point.values) for point in points), default=0.0))
    shapes = []
    for run in _runs(points):
        below = [0.0] * len(run)
        for number, layer in enumerate(layers):
            above = [low + point.values[number] for low, point in zip(below, run, strict=True)]
            edge = [f"{_x(point.x)},{_y(high, top)}" for point, high in zip(run, above, strict=True)]
            back = [f"{_x(point.x)},{_y(low, top)}" for point, low in zip(run, below, strict=True)]
            shapes.append(Markup('<polygon class="{}" points="{}"/>').format(layer, " ".join([*edge, *reversed(back)])))
            shapes.append(Markup('<polyline class="{} edge" points="{}"/>').format(layer, " ".join(edge)))
            below = above
    return Drawing(_svg(title, shapes), top)


def bars(layers: Sequence[str], points: Sequence[Point], width: float, title: str) -> Drawing:
    """A bar for each point, of that share of the width, its layers on top of each other."""
    top = _round_up(max((sum(point.values) for point in points), default=0.0))
    shapes = []
    for point in points:
        low = 0.0
        parts = []
        for layer, value in zip(layers, point.values, strict=True):
            if value > 0:
                y, bottom = _y(low + value, top), _y(low, top)
                shape = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
                parts.append(shape.format(layer, _x(point.x), y, round(width * WIDTH * 0.8, 2), round(bottom - y, 2)))
            low += value
        if parts:
            hint = Markup("<title>{}</title>").format(point.says) if point.says else Markup("")
            shapes.append(Markup("<g>{}{}</g>").format(hint, Markup("").join(parts)))
    return Drawing(_svg(title, shapes), top)


def line(layer: str, points: Sequence[Point], title: str) -> Drawing:
    """One line. Points without values are gaps."""
    top = _round_up(max((point.values[0] for point in points), default=0.0))
    shapes = []
    for run in _runs(points):
        if len(run) == 1:  # a line of one point would not be seen
            run = [run[0], Point(min(run[0].x + 0.005, 1.0), run[0].values)]
        edge = " ".join(f"{_x(point.x)},{_y(point.values[0], top)}" for point in run)
        shapes.append(Markup('<polyline class="{} edge" points="{}"/>').format(layer, edge))
    return Drawing(_svg(title, shapes), top)


def span(begin: float, end: float, layer: str) -> Markup:
    """One bar of a timeline, from `begin` to `end` between 0 and 1. However short, it is seen."""
    width = max(end - begin, 0.004)
    begin = min(begin, 1.0 - width)
    bar = Markup('<rect class="{}" x="{}" y="1" width="{}" height="8" rx="1"/>').format(
        layer, _x(begin), round(width * WIDTH, 2)
    )
    return Markup(
        '<svg class="span" viewBox="0 0 {} 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">{}</svg>'
    ).format(WIDTH, bar)


def _svg(title: str, shapes: Sequence[Markup]) -> Markup:
    grid = Markup('<path class="grid" d="M0 0.5H{w}M0 {half}H{w}M0 {low}H{w}"/>').format(
        w=WIDTH, half=HEIGHT / 2, low=HEIGHT - 0.5
    )
    return Markup(
        '<svg class="drawing" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"'
        ' focusable="false"><title>{}</title>{}{}</svg>'
    ).format(WIDTH, HEIGHT, title, escape(title), grid, Markup("").join(shapes))


def _runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Points that are near enough to each other to be joined."""
    run: list[Point] = []
    for point in points:
        if run and point.x - run[-1].x > _GAP:
            yield run
            run = []
        run.append(point)
    if run:
        yield run


def _x(x: float) -> float:
    return round(min(max(x, 0.0), 1.0) * WIDTH, 2)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - value / top * HEIGHT, 2)


def _round_up(most: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 …, so that the axis has a number that a person can halve."""
    if most <= 1.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= most)
