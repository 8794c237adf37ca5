"""Bars of plots, as inline SVG. The numbers stand beside them as text, so nobody has to see a bar to know."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

_WIDTH = 1000
_LEAST = 4
"""However small a share is, it is seen."""

_BAR = Markup(
    '<svg class="stack" viewBox="0 0 {} 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">{}</svg>'
)
_PART = Markup('<rect class="{}" x="{}" y="0" width="{}" height="10"/>')


def bar(parts: Mapping[str, float], most: float) -> Markup:
    """One bar of stacked parts, by their CSS classes. A bar of `most` fills the whole width."""
    shapes, x = [], 0.0
    for name, value in parts.items():
        if value > 0 and most > 0:
            width = max(value / most * _WIDTH, _LEAST)
            shapes.append(_PART.format(name, round(x, 2), round(width, 2)))
            x += width
    return _BAR.format(max(_WIDTH, round(x, 2)), Markup("").join(shapes))
