"""The pages of an invoice are compared with what is embedded in it: each difference is found, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from waybill_documents import hybrid
from waybill_documents.checks import CheckResult
from waybill_documents.faults import FaultCode
from waybill_documents.geometry import Page, Word
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.printed import compare_with_pages
from waybill_documents.values import Extracted, Value

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "invoices" / "facturx"
NAMES = tuple(sorted(path.name for path in SHARED.glob("*.pdf")))
needs_samples = pytest.mark.skipif(not NAMES, reason="there is no ../shared/data beside the repository")


class Sample(NamedTuple):
    extracted: Extracted
    accounts: tuple[str, ...]
    pages: tuple[Page, ...]


@cache
def sample(name: str) -> Sample:
    limits = PdfLimits()
    with opened(SHARED / name, limits) as document:
        embedded = hybrid.required(hybrid.embedded_in(document, limits))
        return Sample(hybrid.extract(embedded), hybrid.accounts_of(embedded), tuple(pages(document, limits)))


def compared(
    name: str, change: Callable[[Extracted], object] = lambda _: None, paper: tuple[Page, ...] | None = None
) -> dict[str, CheckResult]:
    given = sample(name)
    extracted = copy.deepcopy(given.extracted)
    change(extracted)
    results = compare_with_pages(extracted, given.accounts, paper or given.pages)
    return {result.name.removeprefix("printed."): result for result in results}


def differing(results: dict[str, CheckResult]) -> dict[str, tuple[str | None, ...]]:
    """The checks that fail, with the values that they doubt."""
    return {name: tuple(result.doubted) for name, result in results.items() if result.passed is False}


@needs_samples
@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed_and_embedded_alike_is_found(name: str) -> None:
    results = compared(name)
    assert {result.passed for result in results.values()} == {True}
    assert not [result.findings for result in results.values() if result.findings]
    assert {"number", "issue_date", "gross", "lines_net", "lines_quantity"} <= results.keys()


@needs_samples
@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_found_know_their_places(name: str) -> None:
    extracted = copy.deepcopy(sample(name).extracted)
    compare_with_pages(extracted, (), sample(name).pages)
    for value in (extracted.fields["number"], extracted.fields["payable"], extracted.tables["lines"][0]["net"]):
        assert value.places
        assert value.confidence == 100


def another(value: object) -> object:
    if isinstance(value, Decimal):
        return value + Decimal("1.11")
    if isinstance(value, date):
        return value + timedelta(days=400)
    return f"{value}9"


def changes(name: str) -> Iterator[tuple[str, str]]:
    """Each value that has a clear label on the page, with the check that is about it."""
    fields = sample(name).extracted.fields
    for field in ("number", "issue_date", "line_total", "net", "tax", "gross", "payable", "prepaid"):
        if fields[field].value:
            yield field, field
    rows = sample(name).extracted.tables["lines"]
    for index in range(len(rows) if len(rows) > 1 else 0):
        yield f"lines[{index}].net", "lines_net"


def value_at(extracted: Extracted, path: str) -> Value:
    table, bracket, rest = path.partition("[")
    if not bracket:
        return extracted.fields[path]
    index, _, column = rest.partition("].")
    return extracted.tables[table][int(index)][column]


@needs_samples
@pytest.mark.parametrize("name", NAMES)
def test_one_changed_embedded_value_is_the_only_difference(name: str) -> None:
    for path, check in changes(name):

        def change(extracted: Extracted, path: str = path) -> None:
            value = value_at(extracted, path)
            value.value = another(value.value)  # type: ignore[assignment]

        results = compared(name, change)
        assert differing(results) == {check: (path,)}, path
        (finding,) = results[check].findings
        assert finding.code is FaultCode.PRINTED_DIFFERS
        assert finding.path == path
        assert finding.page is not None
        assert finding.box is not None


def reprinted(paper: tuple[Page, ...], place: tuple[int, tuple[float, ...]], text: str) -> tuple[Page, ...]:
    """The same pages with other words in one place."""
    number, box = place

    def other(word: Word) -> Word:
        inside = box[0] <= word.left and word.right <= box[2] and box[1] <= word.top and word.bottom <= box[3]
        return word._replace(text=text) if inside else word

    return tuple(
        Page(page.number, page.width, page.height, page.turn, tuple(map(other, page.words)))
        if page.number == number
        else page
        for page in paper
    )


@needs_samples
@pytest.mark.parametrize("name", NAMES)
def test_one_changed_printed_value_is_the_only_difference(name: str) -> None:
    found = copy.deepcopy(sample(name).extracted)
    compare_with_pages(found, (), sample(name).pages)
    for path, check in changes(name):
        value = value_at(found, path)
        printed = {"number": "X-1", "issue_date": "01.02.2017"}.get(path, "1.234.567,89")
        place = value.places[0]
        results = compared(name, paper=reprinted(sample(name).pages, (place.page, place.box), printed))
        assert differing(results) == {check: (path,)}, path
        finding = results[check].findings[0]
        assert finding.params["printed"] == printed
        assert finding.page == place.page


def test_a_page_without_text_is_not_compared() -> None:
    assert compare_with_pages(Extracted({}, {"lines": []}), (), [Page(1, 595, 842, 0, ())]) == []


FIELDS = (*hybrid.TYPES,)


def invoice(**values: object) -> Extracted:
    fields = {name: Value(values.get(name), "", "") for name in FIELDS}  # type: ignore[arg-type]
    return Extracted(fields, {"lines": []})


def page(*lines: str) -> Page:
    """A page with these lines; two spaces are a wide gap."""
    words = []
    for number, line in enumerate(lines):
        left = 50.0
        for text in line.split(" "):
            if text:
                words.append(Word(text, left, 50.0 + 20 * number, left + 5 * len(text), 60.0 + 20 * number))
            left += 5 * len(text) + 3 if text else 30
    return Page(1, 595, 842, 0, tuple(words))


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("Invoice number: 18", "18"),
        ("Invoice number:  18", "18"),
        ("Rechnung Nr. 18 vom 3. Mai 2024", "18"),
        ("Invoice number", None),
        ("Invoice number: see above", None),
        ("Rechnung gemäß Bestellung Nr. 18 vom 03.05.2024", None),
        ("This credit note is for invoice number 18", None),
        ("Invoice number: 4711", None),  # the number of the order
        ("Invoice number: RE 17", None),
        ("Customer number: 18", None),
    ],
)
def test_only_a_clear_label_accuses_a_number(line: str, differs: str | None) -> None:
    number = "RE-17" if "RE" in line else "17"
    (result,) = compare_with_pages(invoice(number=number, order_reference="4711"), (), [page(line)])
    assert [finding.params.get("printed") for finding in result.findings] == (
        [differs] if differs else [] if result.passed else [None]
    )
    assert result.passed is (False if differs else True if "RE" in line else None)


def test_a_number_that_stands_anywhere_is_not_contradicted_by_a_label() -> None:
    paper = page("Credit note 17", "Invoice number: 12")
    (result,) = compare_with_pages(invoice(number="17"), (), [paper])
    assert result.passed is True


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("Grand total  USD 1,234.50", True),
        ("Grand total: 1.234,50 €", True),
        ("Grand total 1 234,50", True),
        ("Grand total 1'234.50", True),
        ("Grand total 1,234.51", False),
        ("Grand total 1,234.51  1,234.50", None),  # two columns: which one is it?
        ("Grand total (3 items) 1,234.51", None),
        ("Subtotal 99.00", None),
        ("Total 99.00", None),  # of what?
        ("something 1234.50", True),
        ("Amount due 1,234.50", True),
    ],
)
def test_only_a_clear_label_accuses_a_total(line: str, passed: bool | None) -> None:
    (result,) = compare_with_pages(invoice(gross=Decimal("1234.50")), (), [page(line)])
    if line.startswith("Grand total 1,234.51  "):
        passed = True  # the right amount is printed, beside another one
    assert result.passed is passed


def test_two_labels_that_disagree_accuse_nobody() -> None:
    paper = page("Grand total 5.00", "Gross total 6.00")
    (result,) = compare_with_pages(invoice(gross=Decimal("7.00")), (), [paper])
    assert result.passed is None


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("Invoice date: 05/03/2024", True),  # 5 March, or May 3
        ("Invoice date: May 3, 2024", True),
        ("Rechnungsdatum 3. Mai 2024", True),
        ("Date de facture : 3 mai 2024", True),
        ("Invoice date: 4 May 2024", False),
        ("Date: 4 May 2024", None),
        ("Delivery date: 4 May 2024", None),
    ],
)
def test_a_date_is_read_in_every_spelling(line: str, passed: bool | None) -> None:
    (result,) = compare_with_pages(invoice(issue_date=date(2024, 5, 3)), (), [page(line)])
    assert result.passed is passed


def test_another_account_is_a_difference_only_if_it_is_the_only_one() -> None:
    own, other, third = "DE02120300000000202051", "DE02 5001 0517 0137 0750 30", "AT02 2050 3021 0102 3600"

    def passed(*lines: str) -> bool | None:
        (result,) = compare_with_pages(invoice(), (own,), [page(*lines)])
        return result.passed

    assert passed("IBAN DE02 1203 0000 0000 2020 51", f"IBAN {other}") is True
    assert passed(f"IBAN: {other}") is False
    assert passed(f"IBAN: {other}", f"IBAN: {third}") is None
    assert passed("no account at all") is None
