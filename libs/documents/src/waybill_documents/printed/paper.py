"""What stands where on the pages: phrases, numbers and dates with their boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise

from waybill_documents.geometry import Page, Place, Word, around
from waybill_documents.printed.labels import Label
from waybill_documents.printed.readings import amounts, dates, letters_and_digits
from waybill_documents.text_lines import Lines, PhrasePosition, apart, lines_of

_LONGEST_VALUE = 5
"""Words of a printed date or number, such as `7 . August 2025`."""
_MOST_BESIDE = 12
"""Words after a label that are looked at."""
_MARKS = frozenset({"", "-", "–", "=", "*", "#", "€", "$", "£", "eur", "euro", "usd", "gbp", "chf", "pln", "rp", "idr"})
"""What may stand between a label and its amount, and after the amount."""


@dataclass(frozen=True, slots=True)
class PrintedAmount:
    """A number, and all that it may be."""

    text: str
    readings: frozenset[Decimal]
    place: Place


@dataclass(frozen=True, slots=True)
class PrintedDate:
    text: str
    readings: frozenset[date]
    place: Place


class Paper:
    """The pages of a document, for searching."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self.pages: list[Lines] = []
        for page in pages:
            self.pages.append(lines_of(page))
        self._amounts: dict[Decimal, list[PrintedAmount]] = {}
        for each in self._all_amounts():
            for reading in each.readings:
                self._amounts.setdefault(reading, []).append(each)

    @property
    def blank(self) -> bool:
        """Whether nothing is printed that could be read, as on a scan."""
        return not any(len(lines) for lines in self.pages)

    def _all_amounts(self) -> Iterator[PrintedAmount]:
        for lines in self.pages:
            for line in lines:
                yield from amounts_in(line.words, lines.page.number)

    def amounts(self, value: Decimal) -> list[PrintedAmount]:
        """The numbers that may be this one."""
        return self._amounts.get(abs(value), [])

    def amount(self, value: Decimal) -> PrintedAmount | None:
        """The first of them."""
        return next(iter(self.amounts(value)), None)

    def date(self, value: date) -> PrintedDate | None:
        """The first date that may be this one."""
        for lines in self.pages:
            for line in lines:
                for start in range(len(line.words)):
                    found = date_at(line.words[start : start + _LONGEST_VALUE], lines.page.number)
                    if found is not None and value in found.readings:
                        return found
        return None

    def text(self, value: str) -> Place | None:
        """The first place where a text stands, whatever is between its letters and digits."""
        wanted = letters_and_digits(value)
        if not wanted:
            return None
        for lines in self.pages:
            for number, line in enumerate(lines):
                plain = [letters_and_digits(word.text) for word in line.words]
                for start in range(len(plain)):
                    if count := _words_of(wanted, plain, start):
                        return Place(lines.page.number, lines.box(PhrasePosition(number, start, start + count)))
        return None

    def beside(self, labels: Sequence[Label]) -> Iterator[tuple[Label, list[Word], Lines]]:
        """The words after each label on its line. A longer label on the same words wins over the shorter one."""
        for lines in self.pages:
            ends: dict[tuple[int, int], tuple[int, Label]] = {}
            for label in labels:
                for span in lines.find(label.phrase):
                    known = ends.get((span.line, span.start))
                    if known is None or span.end > known[0]:
                        ends[span.line, span.start] = (span.end, label)
            covered: dict[int, int] = {}
            for (line, start), (end, label) in sorted(ends.items()):
                words = lines.lines[line].words
                # In the middle of a sentence, a label may be about another document.
                if start >= covered.get(line, 0) and (start == 0 or apart(words[start - 1], words[start])):
                    covered[line] = end
                    yield label, words[end : end + _MOST_BESIDE], lines


def _words_of(wanted: str, words: Sequence[str], start: int) -> int:
    """How many words from `start` make up the text, or 0."""
    read = ""
    for at in range(start, len(words)):
        read += words[at]
        if read == wanted:
            return at - start + 1
        if not read or not wanted.startswith(read):
            return 0
    return 0


def amounts_in(words: Sequence[Word], page: int) -> Iterator[PrintedAmount]:
    """The numbers of a line. `12 345,67` is one number, if its words stand close together."""
    at = 0
    while at < len(words):
        taken = 1
        for count in (3, 2):
            joined = words[at : at + count]
            if len(joined) == count and _close(joined) and _grouped(joined):
                taken = count
                break
        text = " ".join(word.text for word in words[at : at + taken])
        if readings := amounts(text):
            yield PrintedAmount(text, readings, Place(page, around(words[at : at + taken])))
        at += taken


def _grouped(words: Sequence[Word]) -> bool:
    first, *others = (word.text for word in words)
    whole = [*others[:-1], others[-1][:3]]
    return (
        1 <= len(first.lstrip("-+")) <= 3
        and first.lstrip("-+").isdigit()
        and all(len(part) == 3 and part.isdigit() for part in whole)
        and others[-1][3:4] in ("", ",", ".")
    )


def _close(words: Sequence[Word]) -> bool:
    height = words[0].bottom - words[0].top
    return all(right.left - left.right < 0.5 * height for left, right in pairwise(words))


def only_amount(words: Sequence[Word], page: int) -> PrintedAmount | None:
    """The number after a label, if nothing else is there but signs of a currency."""
    found = list(amounts_in(words, page))
    if len(found) != 1:
        return None
    box = found[0].place.box
    others = [word for word in words if not box[0] <= word.left <= box[2]]
    return found[0] if all(word.text.casefold().strip(".:;,()") in _MARKS for word in others) else None


def date_at(words: Sequence[Word], page: int) -> PrintedDate | None:
    """The date that these words begin with."""
    if not any(letter.isdigit() for word in words[:2] for letter in word.text):
        return None
    for count in range(min(_LONGEST_VALUE, len(words)), 0, -1):
        text = " ".join(word.text for word in words[:count])
        if readings := dates(text):
            return PrintedDate(text, readings, Place(page, around(words[:count])))
    return None
