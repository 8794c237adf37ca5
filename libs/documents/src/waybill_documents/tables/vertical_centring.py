"""Finds out whether the cells of a table are centred vertically: a description then has lines above the row's numbers.

A row of `n` lines has as many above its numbers as below them. That is how the lines between two rows are divided, and
the proof that they are centred: it must work out for every row. Without it, lines belong to the row above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from waybill_documents.tables.assembly import NEXT_LINE, widest_gap
from waybill_documents.text_lines import Line

_TOLERANCE = 0.4
"""Two lines are equally far from the middle of a row when the distances differ by at most this many heights."""

_HALF = 0.8
"""Two lines of one text are further apart than this many heights, from middle to middle."""


class MarkedLine(NamedTuple):
    """A line of the table."""

    line: Line
    is_anchor: bool
    """Whether it has the numbers of a row."""
    is_text: bool
    """Whether it has only what can be the next line of a cell. Other lines separate the rows above and below them."""


class CentringJudgement(NamedTuple):
    """Whether the rows of a page are centred, and the lines of which that is unclear."""

    is_centred: bool
    doubtful: list[int]


class _Centring(Enum):
    """Where the numbers of the rows are."""

    TOP = auto()
    MIDDLE = auto()
    UNKNOWN = auto()
    """In the middle, or at the top: all lines are equally far apart, and they can be divided both ways."""


def judged(lines: Sequence[MarkedLine], *, is_first: bool, is_last: bool) -> CentringJudgement:
    """Judge the lines of a page. `is_first` and `is_last` say that the table begins and ends on it."""
    runs: list[list[int]] = [[]]
    for number, marked in enumerate(lines):
        if marked.is_anchor or marked.is_text:
            runs[-1].append(number)
        else:
            runs.append([])
    found: set[_Centring] = set()
    doubtful: list[int] = []
    for at, run in enumerate(runs):
        its = [lines[number] for number in run]
        if len({marked.is_anchor for marked in its}) == 2:  # a row, and a text that may belong to it
            centring = _centring(its, is_first=is_first and at == 0, is_last=is_last and at == len(runs) - 1)
            found.add(centring)
            doubtful += run if centring is _Centring.UNKNOWN else [run[number] for number in _misplaced(its)]
    is_centred = found == {_Centring.MIDDLE}
    return CentringJudgement(is_centred, [] if is_centred else doubtful)


def _centring(lines: Sequence[MarkedLine], *, is_first: bool, is_last: bool) -> _Centring:
    """Judge consecutive lines.

    If the table does not begin with them, the lines above the first row may be of the row on the page before; if it
    does not end with them, some below the last row may be on the next page.
    """
    found = _divided(lines, is_whole=True, is_first=is_first, is_last=is_last)
    if is_first or found is _Centring.MIDDLE:
        return found
    return _divided(lines, is_whole=False, is_first=False, is_last=is_last)


def _divided(lines: Sequence[MarkedLine], *, is_whole: bool, is_first: bool, is_last: bool) -> _Centring:
    anchors = [at for at, marked in enumerate(lines) if marked.is_anchor]
    above = [marked.line for marked in lines[: anchors[0]]] if is_whole else []
    if above and not _is_close([*above, lines[anchors[0]].line]):
        return _Centring.TOP
    told, proved, divided = bool(above) and is_first, False, False
    for at, following in pairwise([*anchors, len(lines)]):
        anchor = lines[at].line
        between = [marked.line for marked in lines[at + 1 : following]]
        ends = following == len(lines)
        gap = None if ends else widest_gap([anchor, *between, lines[following].line])
        if at == anchors[0] and not is_whole:
            own = len(between) if gap is None else gap  # some of its lines may be on the page before
        else:
            own = _lines_of_row(anchor, above, between)
            is_cut = ends and not is_last and own == len(between)
            is_symmetric = bool(above) and _is_symmetric(anchor, above, between[:own])
            if above and not is_cut and not is_symmetric:
                return _Centring.TOP
            proved = proved or is_symmetric
            # A text between two of the other lines: the row has an even number of them.
            told = told or (is_symmetric and _middle(anchor) - _middle(above[-1]) < _HALF * anchor.height)
            if between and gap is not None and gap != own:
                return _Centring.TOP
        told = told or (gap is not None and gap < len(between))
        divided = divided or own < len(between)
        above = between[own:]
    if told and proved:
        return _Centring.MIDDLE
    return _Centring.UNKNOWN if divided and not above else _Centring.TOP


def _lines_of_row(anchor: Line, above: Sequence[Line], below: Sequence[Line]) -> int:
    """How many of the lines below a row's numbers are its own, if it has as many above them."""
    if not above:
        return 0
    reach = _middle(anchor) - _middle(above[0]) + _TOLERANCE * anchor.height
    return sum(_middle(line) - _middle(anchor) <= reach for line in below)


def _misplaced(lines: Sequence[MarkedLine]) -> Iterator[int]:
    """The lines of text that belong to the row above them by rule, but stand closer to the row below, and that row."""
    anchors = [at for at, marked in enumerate(lines) if marked.is_anchor]
    for upper, lower in pairwise(anchors):
        gap = widest_gap([marked.line for marked in lines[upper : lower + 1]])
        if gap is not None and upper + gap + 1 < lower:
            yield from range(upper + gap + 1, lower + 1)


def _is_symmetric(anchor: Line, above: Sequence[Line], below: Sequence[Line]) -> bool:
    if not below:
        return False
    up, down = _middle(anchor) - _middle(above[0]), _middle(below[-1]) - _middle(anchor)
    return abs(up - down) <= _TOLERANCE * anchor.height


def _is_close(chain: Sequence[Line]) -> bool:
    return all(
        lower.top - upper.bottom <= NEXT_LINE * min(upper.height, lower.height) for upper, lower in pairwise(chain)
    )


def _middle(line: Line) -> float:
    return (line.top + line.bottom) / 2
