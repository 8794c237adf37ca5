"""Words are grouped into the lines that a person sees, and phrases are found regardless of spacing and case."""

from __future__ import annotations

import random

import pytest

from support.pages import line, lines, page, words_at
from waybill_documents.geometry import Page
from waybill_documents.text_lines import Lines, fold, lines_of, segments


def texts(found: Lines) -> list[str]:
    return [each.text for each in found]


def test_words_side_by_side_are_a_line_from_left_to_right() -> None:
    assert texts(lines((200, 10, "world"), (10, 10, "Hello"), (10, 30, "below"))) == ["Hello world", "below"]


def test_the_order_of_the_file_does_not_matter() -> None:
    words = [word for row in range(20) for word in words_at(10, 12.0 * row, f"row {row} of twenty")]
    random.Random(1).shuffle(words)
    found = lines_of(Page(1, 595, 842, 0, tuple(words)))
    assert texts(found) == [f"row {row} of twenty" for row in range(20)]


def test_uneven_baselines_are_one_line() -> None:
    assert texts(lines((10, 10, "a"), (50, 11.5, "b"), (90, 12.5, "c"), (130, 10.5, "d"))) == ["a b c d"]


def test_lines_close_together_stay_apart() -> None:
    assert texts(lines(*[(10, 8.5 * row, f"row {row}") for row in range(10)])) == [f"row {row}" for row in range(10)]


def test_small_cells_beside_large_ones_are_in_their_line() -> None:
    assert texts(lines((10, 10, "12.500", 10), (80, 12, "per", 7), (120, 12, "pcs", 7))) == ["12.500 per pcs"]


def test_a_raised_note_is_in_the_line_it_is_raised_from() -> None:
    assert texts(lines((10, 10, "Harga"), (36, 9.5, "1)", 6), (60, 10, "12.500"))) == ["Harga 1) 12.500"]


def test_a_tall_title_does_not_tear_the_lines_beside_it() -> None:
    found = lines((10, 10, "INVOICE", 36), *[(300, 8.0 + 11 * row, f"Label {row} : value", 9) for row in range(4)])
    assert [text for text in texts(found) if text != "INVOICE"] == [f"Label {row} : value" for row in range(4)]
    assert all(each.height < 10 for each in found if each.text != "INVOICE")


def test_a_stamp_across_the_page_is_a_line_of_its_own() -> None:
    rows = [(10, 100.0 + 12 * row, f"{row} some text {row}.000") for row in range(8)]
    found = lines(*rows, (30, 120, "LUNAS", 50))
    assert sorted(texts(found)) == sorted(["LUNAS", *(text for _, _, text in rows)])
    middles = [each.top + each.bottom for each in found]
    assert middles == sorted(middles)


def test_an_amount_twice_as_large_as_its_label_is_beside_it() -> None:
    body = [(10, 300.0 + 12 * row, "some usual text") for row in range(9)]
    assert "Total 1.250.000" in texts(lines((10, 110, "Total"), (100, 105, "1.250.000", 20), *body))


def test_an_empty_page_has_no_lines() -> None:
    assert texts(lines_of(page())) == []


@pytest.mark.parametrize("text", ["No. Invoice :", "NO INVOICE", "no.invoice", "No.\u00a0Invoice:", "No . Invoice"])
def test_spelling_does_not_matter_to_phrases(text: str) -> None:
    assert fold(text) == "noinvoice"
    assert line(text).begins_with(["noinvoice"])


def test_a_phrase_is_found_wherever_it_stands() -> None:
    found = lines((10, 10, "Total Subtotal Total: 5"), (10, 30, "DPP Nilai Lain"), (10, 50, "Nilai"))
    assert list(found.find("total")) == [(0, 0, 1), (0, 2, 3)]
    assert [(span.line, span.start, span.end) for span in found.find("nilailain")] == [(1, 1, 3)]
    assert list(found.find("lainnilai")) == []
    assert found.box(next(found.find("nilailain"))) == (30, 30, 80, 40)


@pytest.mark.parametrize("phrase", ["A payer", "P O Number", "N ° facture", "N° facture", "x"])
def test_a_phrase_may_begin_with_a_single_letter(phrase: str) -> None:
    found = lines((10, 10, "apart"), (10, 30, f"Net {phrase} : 5"))
    assert [(span.line, span.start) for span in found.find(fold(phrase))] == [(1, 1)]


def test_a_phrase_is_found_from_top_to_bottom_however_its_letters_are_spaced() -> None:
    found = lines((10, 10, "A payer"), (10, 30, "Apayer"), (10, 50, "a payer"))
    assert [span.line for span in found.find("apayer")] == [0, 1, 2]


def test_a_phrase_ends_with_a_word() -> None:
    assert list(lines((10, 10, "Totals Tot al")).find("total")) == [(0, 1, 3)]


def test_a_part_begins_after_a_wide_gap_or_before_a_last_number() -> None:
    assert line("Subtotal 5").has_part_with(["subtotal"])
    assert line("Terbilang: lima ribu        Subtotal 5").has_part_with(["subtotal"])
    assert line("lima ribu Subtotal 5.000").has_part_with(["subtotal"])
    assert not line("the Subtotal of all").has_part_with(["subtotal"])
    assert not line("Subtotals").has_part_with(["subtotal"])


def test_a_line_is_divided_at_wide_gaps() -> None:
    assert [[word.text for word in part] for part in segments(line("one two     three    four").words)] == [
        ["one", "two"],
        ["three"],
        ["four"],
    ]
    assert segments([]) == []
