"""Finds running headers and footers: lines that are repeated on every page and do not belong to a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from waybill_documents.text_lines import Lines

_EDGE = 6
"""How many lines at the top and at the bottom of a page can be its header and footer."""

T = TypeVar("T")


def with_neighbours(items: Iterable[T]) -> Iterator[tuple[T, list[T]]]:
    """Each item with the one before and the one after it; the first and the last with the two next to them.

    At most three items are in memory at a time.
    """
    window: list[T] = []
    for item in items:
        if len(window) == 3:
            window.pop(0)
        elif len(window) == 2:
            yield window[0], [window[1], item]
        window.append(item)
        del item
        if len(window) == 3:
            yield window[1], [window[0], window[2]]
    for at in range(2 if len(window) == 3 else 0, len(window)):
        yield window[at], window[:at] + window[at + 1 :]


def running(lines: Lines, neighbours: list[Lines]) -> dict[int, int]:
    """Lines at the top and the bottom that neighbouring pages have in the same place, apart from their digits.

    The keys are line numbers; the values say how many of the neighbours have the line.
    """
    if not neighbours or lines.page.sheet is not None:  # a sheet has no headers and footers
        return {}
    edge = min(_EDGE, len(lines))
    there = [{each.signature(number) for number in _edges(each)} for each in neighbours]
    # A text that also appears in the middle of the page is a product that occurs more than once.
    inner = {line.text for line in lines.lines[edge : len(lines) - edge]}
    found: dict[int, int] = {}
    for numbers in (range(edge), range(len(lines) - 1, len(lines) - 1 - edge, -1)):
        for number in numbers:
            signature = lines.signature(number)
            count = sum(signature in each for each in there)
            if not count or lines.lines[number].text in inner:
                break
            found[number] = count
    return found


def _edges(lines: Lines) -> set[int]:
    return {*range(min(_EDGE, len(lines))), *range(max(0, len(lines) - _EDGE), len(lines))}
