"""Labels as they are printed: with a colon or without, joined to their value, part of a longer one, or in two lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from waybill_documents.currencies import MINUS
from waybill_documents.geometry import Box, Word, around, part
from waybill_documents.text_lines import Line, Lines, PhrasePosition, apart, fold, line_of

_MOST_LABELS = 50
"""Occurrences of one label that are examined on a page. More of them occur only on hostile pages."""
_LONGER = 3
"""A longer label goes on for at most this many words before its colon."""
_STACKED = 0.6
"""The lines of one label are at most this many heights apart."""


class LabelPosition(NamedTuple):
    """The position of a label: words `start` to `end` (excluded) of a line, and its box."""

    line: int
    start: int
    end: int
    box: Box
    in_longer: bool
    """Whether it is probably part of a longer label: `Invoice` of `Invoice date`."""
    doubt: tuple[bool, bool, bool, bool]
    """Smaller for what is more certainly this label: a longer one, no colon, a word right before or right after it."""


def label_positions(lines: Lines, labels: Sequence[str], longer: Sequence[str], *, below: bool) -> list[LabelPosition]:
    """Where a page has one of these folded labels. `longer` are labels of the mapping that contain one of them.

    A label above its value can also have two lines of its own.
    """
    spans = [span for label in labels for span in islice(lines.find(label), _MOST_LABELS)]
    covering = [span for label in longer for span in islice(lines.find(label), _MOST_LABELS)] if spans else []
    if not spans and below:
        return [position for label in labels for position in islice(_stacked(lines, label), _MOST_LABELS)]
    positions = []
    for span in spans:
        line = lines.lines[span.line]
        colon = has_colon(line, span.end)
        before, after = _touches(line, span.start), not colon and _touches(line, span.end)
        in_longer = any(_covers(other, span) for other in covering) or (
            not colon and (before or after if below else _goes_on_to_a_colon(line, span.end))
        )
        positions.append(LabelPosition(*span, lines.box(span), in_longer, (in_longer, not colon, before, after)))
    return positions


def _covers(longer: PhrasePosition, span: PhrasePosition) -> bool:
    return (
        longer.line == span.line
        and longer.start <= span.start
        and longer.end >= span.end
        and longer.end - longer.start > span.end - span.start
    )


def _touches(line: Line, at: int) -> bool:
    """Whether two neighbouring words, the second one at this position, are close to each other and parts of a text."""
    if not 0 < at < len(line.words) or not line.folded[at] or not line.folded[at - 1]:
        return False
    return not line.words[at - 1].text.endswith(":") and not apart(line.words[at - 1], line.words[at])


def _goes_on_to_a_colon(line: Line, at: int) -> bool:
    """Whether the words right after a label are the rest of a longer one: `date:` after `Invoice`."""
    for position in range(at, min(at + _LONGER, len(line.words))):
        word = line.words[position]
        if not _touches(line, position) or any(sign.isdigit() for sign in word.text):
            return False
        if has_colon(line, position + 1):
            return True
    return False


def _stacked(lines: Lines, label: str) -> Iterator[LabelPosition]:
    """A label in two lines, one above the other, with nothing beside them."""
    for number, (upper, lower) in enumerate(zip(lines.lines, lines.lines[1:], strict=False)):
        if not any(label.startswith(folded) for folded in upper.folded if folded):
            continue
        if lower.top - upper.bottom > _STACKED * min(upper.height, lower.height):
            continue
        for words in lines.segments(number):
            read = "".join([fold(word.text) for word in words])
            if not read or not label.startswith(read) or read == label:
                continue
            for others in lines.segments(number + 1):
                if (
                    read + "".join([fold(word.text) for word in others]) == label
                    and others[0].left < words[-1].right
                    and words[0].left < others[-1].right
                ):
                    box = around([*words, *others])
                    start = lower.words.index(others[0])
                    yield LabelPosition(number + 1, start, start + len(others), box, False, (False, True, False, False))


def split_labels(line: Line, labels: AbstractSet[str]) -> Line:
    """The line with `Tanggal:7` as two words. The PDF has it as one."""
    if not any(":" in word.text[1:-1] for word in line.words):
        return line
    words: list[Word] = []
    for word in line.words:
        colon = word.text.find(":", 1, -1) + 1
        head = fold(word.text[:colon])
        if head and any(label.endswith(head) for label in labels):
            words += part(word, 0, colon), part(word, colon, len(word.text))
        else:
            words.append(word)
    return line_of(words)


def is_minus(line: Line, at: int) -> bool:
    """Whether a dash belongs to the number after it and not to the label before it."""
    dash, following = line.words[at], line.words[at + 1 : at + 2]
    if dash.text.lstrip(":") not in MINUS or not following or not any(sign.isdigit() for sign in following[0].text):
        return False
    gap = following[0].left - dash.right
    return gap <= dash.left - line.words[at - 1].right or not apart(dash, following[0])


def has_colon(line: Line, end: int) -> bool:
    """Whether the phrase that ends before this word has a colon."""
    return line.words[end - 1].text.endswith(":") or (end < len(line.words) and line.words[end].text.startswith(":"))
