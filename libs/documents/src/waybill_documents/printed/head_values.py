"""Compares the number, the dates, the totals and the account of an invoice with what is printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal

from waybill_documents.geometry import Place, Word, around, cut
from waybill_documents.printed.labels import AMOUNTS, DOCUMENTS, DUE_DATE, ISSUE_DATE, NUMBER
from waybill_documents.printed.outcome import PrintedOutcome
from waybill_documents.printed.paper import Paper, PrintedAmount, PrintedDate, date_at, only_amount
from waybill_documents.printed.readings import iban, letters_and_digits
from waybill_documents.text_lines import apart

TOTALS = ("line_total", "allowances", "charges", "net", "tax", "gross", "prepaid", "payable")

_TITLE = "|".join(re.escape(word) for word in sorted(DOCUMENTS, key=len, reverse=True))
_HEADING = re.compile(
    rf"(?:{_TITLE})(?: ?\([^()]{{1,60}}\))* ?(?:nr|no|nummer|number|n°|nº|#)[.:]* ?(?P<number>\S{{1,60}})"
    r"(?: (?:vom|dated|du|van|tanggal|del|z dnia) (?P<day>.{6,40}))?",
    re.IGNORECASE,
)
"""`Rechnung (380) Nr. 471102 vom 05.06.2018` at the beginning of a line, where no reference to another document is."""
_NUMBER_WORDS = 4
_BEGINS_IBAN = re.compile("[A-Za-z]{2}[0-9]{2}")


def number(paper: Paper, value: str, others: Collection[str]) -> PrintedOutcome:
    """The invoice's number. If it stands anywhere, a label beside another number is about another document."""
    place = paper.text(value)
    if place is not None:
        return PrintedOutcome.same(place)
    known = {letters_and_digits(other) for other in others}
    said = [(text, place) for text, place in _numbers(paper) if letters_and_digits(text) not in known]
    return PrintedOutcome.of_said(said)


def _numbers(paper: Paper) -> Iterator[tuple[str, Place]]:
    for _, words, lines in paper.beside(NUMBER):
        near = _near(words)[:_NUMBER_WORDS]
        with_digits = [word for word in near if any(letter.isdigit() for letter in word.text)]
        if with_digits:
            yield with_digits[0].text.strip(".,;:()"), Place(lines.page.number, with_digits[0][1:])
    for match, words, page in _headings(paper):
        if any(letter.isdigit() for letter in match["number"]):
            yield match["number"].strip(".,;:()"), Place(page, around(cut(words, *match.span("number"))))


def _near(words: Sequence[Word]) -> list[Word]:
    """The words after a label up to the next wide gap; a gap right after the label is allowed."""
    found: list[Word] = []
    for word in words:
        if any(letter.isalnum() for each in found for letter in each.text) and apart(found[-1], word):
            break
        found.append(word)
    return found


def _headings(paper: Paper) -> Iterator[tuple[re.Match[str], list[Word], int]]:
    for lines in paper.pages:
        for line in lines:
            if match := _HEADING.match(line.text):
                yield match, line.words, lines.page.number


def issue_date(paper: Paper, value: date, *, corrects: bool) -> PrintedOutcome:
    """The date of issue. A credit note may also print that of the invoice it corrects."""
    said = [found for _, words, lines in paper.beside(ISSUE_DATE) if (found := _date(words, lines.page.number))]
    for match, words, page in _headings(paper):
        if match["day"] and (found := date_at(cut(words, match.start("day"), len(match.string)), page)):
            said.append(found)
    return _dated(paper, value, said, anywhere=corrects)


def due_date(paper: Paper, value: date) -> PrintedOutcome:
    """The date by which it is to be paid. Others stand beside it, for discounts, so one that is found is enough."""
    said = [found for _, words, lines in paper.beside(DUE_DATE) if (found := _date(words, lines.page.number))]
    return _dated(paper, value, said, anywhere=True)


def _date(words: Sequence[Word], page: int) -> PrintedDate | None:
    while words and not any(letter.isalnum() for letter in words[0].text):
        words = words[1:]
    return date_at(words, page)


def _dated(paper: Paper, value: date, said: list[PrintedDate], *, anywhere: bool) -> PrintedOutcome:
    if fitting := next((each for each in said if value in each.readings), None):
        return PrintedOutcome.same(fitting.place)
    if anywhere or not said:
        found = paper.date(value)
        if found is not None:
            return PrintedOutcome.same(found.place)
    return PrintedOutcome.of_said([(each.text, each.place) for each in said])


def totals(paper: Paper, values: Mapping[str, Decimal]) -> dict[str, PrintedOutcome]:
    """Each total by its name. What stands beside its label decides, because the same sum often has several names."""
    said: dict[str, list[PrintedAmount]] = {}
    for label, words, lines in paper.beside(AMOUNTS):
        found = only_amount(words, lines.page.number)
        if found is not None:
            name, *others = label.means
            if not any(abs(values[other]) in found.readings for other in others if other in values):
                said.setdefault(name, []).append(found)
    return {name: _total(paper, value, said.get(name, [])) for name, value in values.items()}


def _total(paper: Paper, value: Decimal, said: list[PrintedAmount]) -> PrintedOutcome:
    if fitting := next((each for each in said if abs(value) in each.readings), None):
        return PrintedOutcome.same(fitting.place)
    if not said:
        found = paper.amount(value) if value else None
        return PrintedOutcome.same(found.place) if found else PrintedOutcome.unseen(worth_a_note=bool(value))
    return PrintedOutcome.of_said([(each.text, each.place) for each in said])


def account(paper: Paper, values: Collection[str]) -> PrintedOutcome:
    """The account to pay to. If several accounts are printed, another one may be meant."""
    for value in values:
        if place := paper.text(value):
            return PrintedOutcome.same(place)
    if not all(iban(value) for value in values):  # an account of another kind, or a mistyped one
        return PrintedOutcome.unseen()
    printed = dict(_ibans(paper))
    return PrintedOutcome.of_said(list(printed.items()))


def _ibans(paper: Paper) -> Iterator[tuple[str, Place]]:
    for lines in paper.pages:
        for line in lines:
            for start, first in enumerate(line.words):
                if not _BEGINS_IBAN.match(first.text):
                    continue
                for count in range(1, min(10, len(line.words) - start) + 1):
                    words = line.words[start : start + count]
                    if number := iban("".join(word.text for word in words)):
                        yield number, Place(lines.page.number, around(words))
                        break
