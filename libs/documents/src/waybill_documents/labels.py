"""Labels as they are printed: with a colon or without, joined to their value, or followed by a dash."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from waybill_documents.currencies import MINUS
from waybill_documents.geometry import Word, part
from waybill_documents.text_lines import Line, apart, fold, line_of


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
