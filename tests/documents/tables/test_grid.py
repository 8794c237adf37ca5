"""Edges between columns are in gaps, and each column gets its own words."""

from __future__ import annotations

from collections.abc import Sequence

from support.pages import line, words_at
from waybill_documents.geometry import Word, around
from waybill_documents.tables.grid import ColumnKinds, Grid, grid_for
from waybill_documents.tables.header import Header

KINDS = ColumnKinds(frozenset({"qty", "price", "amount", "no"}), frozenset({"no", "amount"}))


def heading(text: str, *names: str) -> Header:
    """A header with a column for each word of a line, named by the word."""
    words = list(words_at(0, 0, text))
    assert [word.text for word in words] == list(names) or not names
    return Header({word.text: around([word]) for word in words}, 0, 0)


def rows(*texts: str) -> list[list[Word]]:
    return [line(text).words for text in texts]


def cells(grid: Grid, text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for word in line(text).words:
        found.setdefault(grid.names[grid.column(word)], []).append(word.text)
    return {name: " ".join(words) for name, words in found.items()}


def fitted(header: str, *texts: str) -> list[dict[str, str]]:
    grid = grid_for(heading(header), rows(*texts), KINDS)
    return [cells(grid, text) for text in texts]


def test_numbers_reach_out_to_the_left_of_their_header_and_texts_to_the_right_of_theirs() -> None:
    assert fitted(
        "no   name                      price         amount",
        "1    Pipa galvanis panjang  12.500,00     12.500,00",
        "22   Mur                    1.000.000  1.000.000,00",
    ) == [
        {"no": "1", "name": "Pipa galvanis panjang", "price": "12.500,00", "amount": "12.500,00"},
        {"no": "22", "name": "Mur", "price": "1.000.000", "amount": "1.000.000,00"},
    ]


def test_numbers_aligned_right_under_headers_aligned_left() -> None:
    assert fitted(
        "no   name           qty         price             amount",
        "1    Pipa               12          500              6.000",
    ) == [{"no": "1", "name": "Pipa", "qty": "12", "price": "500", "amount": "6.000"}]


def test_a_text_that_begins_left_of_its_header() -> None:
    assert fitted(
        "no           name             qty   amount",
        "1  Pipa galvanis              5     100",
        "2  Mur                        6     200",
    ) == [
        {"no": "1", "name": "Pipa galvanis", "qty": "5", "amount": "100"},
        {"no": "2", "name": "Mur", "qty": "6", "amount": "200"},
    ]


def test_one_row_with_numbers_in_its_text() -> None:
    assert fitted(
        "no   name                          qty   amount", "1    Besi D13 12.000 mm 25             7      700"
    ) == [{"no": "1", "name": "Besi D13 12.000 mm 25", "qty": "7", "amount": "700"}]


def test_an_empty_column_takes_nothing_from_its_neighbours() -> None:
    assert fitted(
        "no   name        qty      price      amount",
        "1    Pipa          5                    100",
        "2    Mur           6                    200",
    ) == [
        {"no": "1", "name": "Pipa", "qty": "5", "amount": "100"},
        {"no": "2", "name": "Mur", "qty": "6", "amount": "200"},
    ]


def test_a_short_text_far_from_its_centred_header_is_the_column_that_cannot_be_empty() -> None:
    kinds = ColumnKinds(frozenset({"no"}), frozenset({"no", "name"}))
    row = "1         LV                                     kg"
    grid = grid_for(heading("no   code              name              unit"), rows(row), kinds)
    assert cells(grid, row) == {"no": "1", "name": "LV", "unit": "kg"}


def test_no_rows_at_all() -> None:
    grid = grid_for(heading("no   name   amount"), [], KINDS)
    assert len(grid.edges) == 2
    assert grid.names == ("no", "name", "amount")


def test_a_tight_gap_is_enough() -> None:
    header = Header({"qty": (0, 0, 20, 10), "unit": (21, 0, 45, 10)}, 0, 0)
    body = [[Word("1.500", 0, 20, 20.2, 30), Word("pcs", 20.8, 20, 36, 30)], [Word("2", 15, 40, 20.2, 50)]]
    grid = grid_for(header, body, KINDS)
    assert 20.2 < grid.edges[0] < 20.8
    assert not any(grid.cuts(word) for row in body for word in row)


def test_where_no_white_is_left_the_edge_cuts_as_few_words_as_can_be() -> None:
    header = Header({"name": (0, 0, 20, 10), "amount": (100, 0, 130, 10)}, 0, 0)
    usual: list[Sequence[Word]] = [[Word("abc", 0, y, 40, y + 10), Word("500", 110, y, 130, y + 10)] for y in (20, 40)]
    across = Word("stamp-across", 10, 60, 125, 70)
    grid = grid_for(header, [*usual, [across]], KINDS)
    assert 40 < grid.edges[0] < 110
    assert grid.cuts(across)
    assert not any(grid.cuts(word) for row in usual for word in row)


def test_columns_in_another_order_than_the_mapping_has_them() -> None:
    grid = grid_for(Header({"b": (100, 0, 120, 10), "a": (0, 0, 20, 10)}, 0, 0), [], KINDS)
    assert grid.names == ("a", "b")


def test_a_header_in_the_same_place_fits_and_a_moved_one_does_not() -> None:
    header = heading("no   name   amount")
    grid = grid_for(header, [], KINDS)
    assert grid.fits(header)
    moved = {name: (left + 2, top, right + 2, bottom) for name, (left, top, right, bottom) in header.boxes.items()}
    assert not grid.fits(Header(moved, 0, 0))
    assert not grid.fits(heading("no   name"))
