"""Hostile pages with many repetitions are read as fast as other pages."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from support.invoice_comparison import pt_simon
from support.pages import extract_pages, words_at
from waybill_documents.faults import DocumentRejected
from waybill_documents.geometry import Page, Word
from waybill_documents.mapping.model import Mapping

WORDS = 4_000
SECONDS = 3.0
"""Seconds of processor time, with a margin for slow machines."""
WIDE = 200_000.0
HEADER = "No Kode Nama Barang / Jasa HS Code Qty Satuan Harga Satuan Diskon Jumlah"


def of_one_line(text: str, gap: float = 5.0) -> list[Word]:
    """Many words beside each other."""
    words, x = [], 10.0
    repeated = text.split(" ") * (WORDS // len(text.split(" ")))
    for word in repeated:
        words.append(Word(word, x, 300.0, x + 5 * len(word), 310.0))
        x += 5 * len(word) + gap
    return words


def page(*words: Word) -> Page:
    return Page(1, WIDE, 842.0, 0, words)


def seconds(rule: Mapping, given: Page) -> float:
    start = time.process_time()
    with contextlib.suppress(DocumentRejected):
        extract_pages(rule, given)
    return time.process_time() - start


@pytest.mark.parametrize("gap", [5.0, 0.5, 60.0], ids=["near", "close", "apart"])
@pytest.mark.parametrize(
    "text",
    ["NPWP Kepada", "Harga", "Nama Harga No", "Subtotal", "Kepada", "Subtotal 5", "Rp", "- 5", "Rp -", "NPWP :", "x"],
)
def test_a_line_of_very_many_words(text: str, gap: float) -> None:
    assert seconds(pt_simon(), page(*of_one_line(text, gap))) < SECONDS


@pytest.mark.parametrize("text", ["1 x Subtotal 5", "1", "x - 5 5", "Kepada Kepada", "Pindahan", HEADER])
def test_very_many_lines_under_a_header(text: str) -> None:
    lines: list[Any] = [*words_at(10, 50, HEADER)]
    count = WORDS // len(text.split(" "))
    for number in range(count):
        lines += words_at(10, 70 + 12.0 * number, text.replace(" ", "     "))
    given = Page(1, 595.0, 70 + 12.0 * count, 0, tuple(lines))
    assert seconds(pt_simon(), given) < SECONDS


def test_a_header_above_a_line_of_very_many_words() -> None:
    header = list(words_at(10, 285, HEADER.replace(" ", " " * 400)))
    for gap in (5.0, 60.0):
        assert seconds(pt_simon(), page(*header, *of_one_line("1 a", gap))) < SECONDS


def test_very_many_words_in_one_place() -> None:
    header = list(words_at(10, 285, HEADER.replace(" ", "     ")))
    heap = [Word("1.000", 100.0, 300.0, 400.0, 310.0)] * WORDS
    assert seconds(pt_simon(), page(*header, *heap)) < SECONDS
