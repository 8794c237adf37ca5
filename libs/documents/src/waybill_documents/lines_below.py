"""Finds the lines under a label: those that begin where it begins, end where it ends, or are centred under it."""

from __future__ import annotations

from collections.abc import Sequence

from waybill_documents.geometry import Box, Word, around
from waybill_documents.text_lines import Lines, line_of

MOST_WORDS = 200
"""The most words of a value on one line."""
_MOST_LINES = 100
"""The most lines of a value."""
_NEXT_LINE = 2.5
"""Lines under a label belong to it while the gap between them is at most this many heights."""
_INDENT = 1.5
"""Such lines may begin this many heights to the left of the label."""
_ALIGNED = 0.75
"""Two edges or two middles are aligned when they differ by at most this many heights."""


def lines_below(
    lines: Lines, number: int, label: Box, until: tuple[str, ...], most: int | None, *, reach: Box | None = None
) -> list[list[Word]]:
    """The words below a label on line `number`, line by line, until the gap becomes wide or a phrase ends them.

    `reach` is the box under which they may be, if that is wider than the label.
    """
    taken: list[list[Word]] = []
    box = reach or label
    others = [
        around(words)
        for words in lines.segments(number)
        if words[0].left > label[2] - 0.1 or words[-1].right < label[0] + 0.1
    ]
    right, bottom = box[2], box[3]
    for below in range(number + 1, min(number + 1 + _MOST_LINES, len(lines))):
        line = lines.lines[below]
        if line.top - bottom > _NEXT_LINE * line.height:
            break
        if line.top < box[3] - line.height / 2:
            continue
        room = line.height / 2
        under = next(
            (
                words[:MOST_WORDS]
                for words in lines.segments(below)
                if words[0].left < right + room
                and words[-1].right > box[0] - room
                and _is_of(words, box, others, line.height)
            ),
            None,
        )
        if under is None:
            continue
        if line_of(under).begins_with(until):
            break
        taken.append(under)
        bottom = line.bottom
        right = max(right, under[-1].right)
        if most is not None and len(taken) >= most:
            break
    return taken


def _is_of(words: Sequence[Word], label: Box, others: Sequence[Box], height: float) -> bool:
    """Whether a text is aligned with the label, and not better aligned with another text on the label's line."""
    left, right = words[0].left, words[-1].right
    aligned = _ALIGNED * height
    own = _offset(left, right, label)
    if own > aligned and left <= label[0] - _INDENT * height:
        return False
    return own <= aligned / 2 or not any(
        other[0] < right and left < other[2] and _offset(left, right, other) < own for other in others
    )


def _offset(left: float, right: float, label: Box) -> float:
    """How far a text is from being aligned with the label at the left, at the right or in the middle."""
    return min(abs(left - label[0]), abs(right - label[2]), abs(left + right - label[0] - label[2]) / 2)
