"""A value in running text is found across the end of a line, and every part of it keeps its place."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.test_fields import read, value
from support.pages import Printed, line, lines, page, table
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import parse
from waybill_documents.paragraphs import Paragraph, paragraphs
from waybill_documents.text_lines import lines_of

LETTER = """
Kami menagih jumlah sebesar Rp          Nomor kontrak
1.250.000 untuk bulan Agustus           adalah K-
2025, jatuh tempo 7 Septem-             4711 / 2025.
ber 2025.

Hormat kami, 9 Oktober
"""


def found(**rule: Any) -> tuple[object, list[tuple[float, ...]]]:
    read_value = value(LETTER, wraps=True, **rule)
    return read_value.value, [place.box for place in read_value.places]


def test_a_pattern_matches_across_the_end_of_a_line_and_has_a_place_on_each() -> None:
    number, places = found(pattern="(Rp [0-9.]+)", type="decimal")
    assert str(number) == "1250000"
    assert [(box[0], box[1]) for box in places] == [(170.0, 100.0), (30.0, 112.0)]


def test_columns_beside_each_other_are_not_mixed() -> None:
    assert found(pattern="kontrak adalah (K-.*)[.]$")[0] == "K- 4711 / 2025"
    assert found(pattern="adalah (K-[0-9]+)")[0] is None
    assert found(pattern="adalah (K-[0-9]+)", join="")[0] == "K-4711"


def test_the_text_after_a_label_goes_on_in_the_next_lines() -> None:
    assert found(label="jumlah sebesar", pattern="^Rp ([0-9.]+)")[0] == "1.250.000"
    assert found(label="Nomor kontrak", pattern="^adalah (K- 4711)")[0] == "K- 4711"
    assert found(label="Nomor kontrak", pattern="Rp")[0] is None


def test_a_paragraph_ends_at_a_gap() -> None:
    assert found(pattern="2025[.] Hormat")[0] is None
    assert value(LETTER, pattern="ber 2025").value == "ber 2025"
    assert value(LETTER, pattern="bulan Agustus 2025").value is None


def test_a_pattern_in_the_lines_below_a_label_matches_across_them() -> None:
    text = "Kepada\nPT Maju\nJaya Abadi"
    rule: dict[str, Any] = {"label": "Kepada", "direction": "below", "lines": "1-", "pattern": "PT (.*) Abadi"}
    assert value(text, **rule).value is None
    assert value(text, **rule, wraps=True).value == "Maju Jaya"


def test_a_title_is_no_part_of_the_text_below_it() -> None:
    given: list[Printed] = [(30.0, 100.0, "Nomor", 16.0), (30.0, 118.0, "4711")]
    assert [paragraph.text for paragraph in paragraphs(lines(*given), " ")] == ["Nomor", "4711"]


def test_the_place_of_a_finding_is_where_the_text_begins() -> None:
    text = "jatuh tempo pada 31\nFebruari 2025 nanti"
    rule: dict[str, Any] = {"type": "date", "pattern": "pada (.*) nanti", "wraps": True, "required": True}
    [finding] = read(text, it=rule).findings
    assert finding.message == "it: '31 Februari 2025' is not a date such as 7 Agustus 2025"
    assert finding.box == (115.0, 100.0, 125.0, 110.0)


def test_wrapping_needs_a_pattern() -> None:
    fields = b'{"it": {"label": "Total", "wraps": true}}'
    with pytest.raises(MappingFault, match="only a pattern can match across the end of a line"):
        parse(b'{"format": 1, "name": "a_v1", "title": "A", "fields": ' + fields + b"}")


words = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=6)


@given(
    st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["", " ", "; "]),
    st.data(),
)
def test_the_parts_of_a_text_are_the_words_it_is_made_of(rows: list[list[str]], join: str, data: st.DataObject) -> None:
    paragraph = Paragraph([line(" ".join(row), 12.0 * number).words for number, row in enumerate(rows)], join)
    text = paragraph.text
    assert text == join.join(" ".join(row) for row in rows)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    parts = "".join(word.text for part in paragraph.parts(start, end) for word in part)
    assert parts == "".join(
        letter
        for (at, letter), kept in zip(enumerate(text), _letters(rows, join), strict=True)
        if kept and start <= at < end
    )


def _letters(rows: list[list[str]], join: str) -> list[bool]:
    """Which characters of the text belong to a word, and not to what joins them."""
    marks: list[bool] = []
    for number, row in enumerate(rows):
        marks += [False] * len(join) if number else []
        for position, word in enumerate(row):
            marks += [False] if position else []
            marks += [True] * len(word)
    return marks


def test_a_hostile_page_takes_no_time() -> None:
    strings = [(float(column * 30), float(row * 12), "x") for row in range(60) for column in range(600)]
    started = time.process_time()
    assert len(paragraphs(lines_of(page(*strings)), " ")) == 600
    assert len(paragraphs(lines_of(page(*table(["x"] * 3000))), " ")) > 1
    assert time.process_time() - started < 10
