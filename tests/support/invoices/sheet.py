"""Composes one page: strings and rules in displayed coordinates, written in the layout's order and rotation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas

from support.invoices.layout import Align, Layout, Order


class DoesNotFit(ValueError):
    """A text is wider than its place and would overlap its neighbour."""


@lru_cache(maxsize=100_000)
def width_of(text: str, font: str, size: float) -> float:
    return float(pdfmetrics.stringWidth(text, font, size))


def wrap(text: str, font: str, size: float, width: float) -> tuple[str, ...]:
    """Lines no wider than `width`, broken at spaces only, so that joining them with spaces gives the text back."""
    space = width_of(" ", font, size)
    lines: list[str] = []
    line: list[str] = []
    used = 0.0
    for word in text.split(" "):
        wide = width_of(word, font, size)
        if wide > width:
            raise DoesNotFit(f"{word!r} is {wide:.1f} wide, there is room for {width:.1f}")
        if line and used + space + wide > width:
            lines.append(" ".join(line))
            line, used = [], 0.0
        used += wide + (space if line else 0.0)
        line.append(word)
    lines.append(" ".join(line))
    return tuple(lines)


@dataclass(frozen=True)
class _Text:
    x: float
    y: float
    text: str
    font: str
    size: float

    @property
    def top(self) -> float:
        return self.y - 0.72 * self.size

    @property
    def bottom(self) -> float:
        return self.y + 0.2 * self.size

    @property
    def right(self) -> float:
        return self.x + width_of(self.text, self.font, self.size)


@dataclass
class Sheet:
    layout: Layout

    def __post_init__(self) -> None:
        self._texts: list[_Text] = []
        self._rules: list[tuple[float, float, float, float]] = []
        self._shades: list[tuple[float, float, float, float]] = []

    def text(self, x: float, y: float, text: str, *, font: str = "", size: float = 0.0, align: Align = "left") -> None:
        """A string whose line starts at `y`; `x` is its left end, middle or right end."""
        font, size = font or self.layout.font.regular, size or self.layout.size
        wide = width_of(text, font, size)
        left = x - {"left": 0.0, "center": wide / 2, "right": wide}[align]
        if left < 1 or left + wide > self.layout.page[0] - 1 or y + size > self.layout.page[1]:
            raise DoesNotFit(f"{text!r} runs off the page")
        self._texts.append(_Text(left, y + size * 0.85, text, font, size))

    def rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._rules.append((x1, y1, x2, y2))

    def shade(self, x: float, y: float, width: float, height: float) -> None:
        self._shades.append((x, y, width, height))

    def write(self, canvas: Canvas) -> None:
        """Close the page on the canvas."""
        self._refuse_collisions()
        wide, high = self.layout.page
        # reportlab takes the displayed size and swaps the sides of the media box of a rotated page itself.
        canvas.setPageSize((wide, high))
        canvas.setPageRotation(self.layout.rotate)
        if self.layout.rotate == 90:
            canvas.transform(0, 1, -1, 0, high, 0)
        elif self.layout.rotate == 270:
            canvas.transform(0, -1, 1, 0, 0, wide)
        canvas.setFillGray(0.9)
        for x, y, width, height in self._shades:
            canvas.rect(x, high - y - height, width, height, stroke=0, fill=1)
        canvas.setFillGray(0)
        canvas.setLineWidth(0.5)
        for x1, y1, x2, y2 in self._rules:
            canvas.line(x1, high - y1, x2, high - y2)
        for text in self._ordered():
            canvas.setFont(text.font, text.size)
            canvas.drawString(text.x, high - text.y, text.text)
        canvas.showPage()

    def _refuse_collisions(self) -> None:
        """Assert that a person could read the page; otherwise a failing program would prove nothing."""
        texts = sorted(self._texts, key=lambda text: text.top)
        for index, text in enumerate(texts):
            for other in texts[index + 1 :]:
                if other.top >= text.bottom:
                    break
                if other.x < text.right + 1 and text.x < other.right + 1:
                    raise DoesNotFit(f"{text.text!r} runs into {other.text!r} ({self.layout.name})")

    def _ordered(self) -> list[_Text]:
        texts = [word for text in self._texts for word in _words(text)] if self.layout.word_by_word else self._texts
        match self.layout.order:
            case Order.READING:
                return texts
            case Order.COLUMNS:
                return sorted(texts, key=lambda text: (text.x, text.y))
            case Order.BOTTOM_UP:
                return sorted(texts, key=lambda text: (-text.y, -text.x))
            case Order.SHUFFLED:
                return random.Random(len(texts)).sample(texts, len(texts))


def _words(text: _Text) -> Iterator[_Text]:
    x = text.x
    for word in text.text.split(" "):
        yield _Text(x, text.y, word, text.font, text.size)
        x += width_of(f"{word} ", text.font, text.size)
