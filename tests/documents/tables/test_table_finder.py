"""Tables are found by how words line up, and prose is not taken for a table."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, FrameBreak, Paragraph, Table
from reportlab.platypus.doctemplate import BaseDocTemplate, PageTemplate
from reportlab.platypus.frames import Frame

from support.invoices import make_invoice, make_layout, print_invoice
from waybill_documents.geometry import Page, Word
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.tables.table_finder import guess_tables

LETTER = 5.0
"""The width of a letter on the typed pages below; a line is ten high."""


def page(*words: Word) -> Page:
    return Page(1, 595, 842, 0, words)


def typed(*lines: str, pitch: float = 12) -> Page:
    """A page in a monospaced font: each word has the position that it has in the text."""
    words = []
    for number, line in enumerate(lines):
        at = 0
        for text in line.split():
            at = line.index(text, at)
            top = 100 + number * pitch
            words.append(Word(text, 50 + at * LETTER, top, 50 + (at + len(text)) * LETTER, top + 10))
            at += len(text)
    return page(*words)


def rows(*lines: str) -> list[list[list[str]]]:
    return [table.rows for table in guess_tables(typed(*lines))]


def printed(folder: Path, *flowables: Flowable, columns: int = 1) -> list[Page]:
    buffer = io.BytesIO()
    document = BaseDocTemplate(buffer, pagesize=A4)
    width = (A4[0] - 100) / columns
    frames = [Frame(50 + at * width, 50, width - 20, A4[1] - 100) for at in range(columns)]
    document.addPageTemplates([PageTemplate(frames=frames)])
    document.build(list(flowables))
    return of_pdf(folder, buffer.getvalue())


def of_pdf(folder: Path, content: bytes) -> list[Page]:
    path = folder / "printed.pdf"
    path.write_bytes(content)
    with opened(path, PdfLimits()) as document:
        return list(pages(document, PdfLimits()))


def test_a_table_with_left_and_right_aligned_columns() -> None:
    assert rows(
        "Item            Pieces     Amount",
        "Bolt                 3      12,50",
        "Washer             144     100,00",
        "Nut                  7       3,00",
    ) == [[["Item", "Pieces", "Amount"], ["Bolt", "3", "12,50"], ["Washer", "144", "100,00"], ["Nut", "7", "3,00"]]]


def test_wrapped_cells_go_back_into_their_row() -> None:
    assert rows(
        "No   Description            Amount",
        "1    Concrete nails, five    12,50",
        "     centimetres, a box",
        "     of 200",
        "2    Nuts                     3,00",
        "3    Bolts                    4,00",
    ) == [
        [
            ["No", "Description", "Amount"],
            ["1", "Concrete nails, five centimetres, a box of 200", "12,50"],
            ["2", "Nuts", "3,00"],
            ["3", "Bolts", "4,00"],
        ]
    ]


def test_amounts_are_never_joined() -> None:
    [found] = rows("a    1.000    5", "b    2.000    6", "c    3.000    7", "     6.000")
    assert found[-1] == ["", "6.000", ""]


def test_a_head_beside_its_column_belongs_to_it() -> None:
    [found] = rows(
        "Item   Qty            Unit",
        "Bolt           12     box",
        "Nuts            7     bag",
        "Nail            9     kg",
    )
    assert found[0] == ["Item", "Qty", "Unit"]
    assert found[1] == ["Bolt", "12", "box"]


def test_narrow_white_through_many_rows_parts_columns() -> None:
    units = ["box", "bag", "kg", "roll", "drum", "set", "l", "m"]
    lines = [
        f"Thing {letter}       {n * 37 % 900:>4} {unit}"
        for n, (letter, unit) in enumerate(zip("abcdefgh", units, strict=True))
    ]
    [found] = rows(*lines)
    assert [row[-2:] for row in found] == [[str(n * 37 % 900), unit] for n, unit in enumerate(units)]


def test_two_tables_and_the_text_between_them() -> None:
    found = rows(
        "a     b     c",
        "1     2     3",
        "4     5     6",
        "Some words that run over all of it",
        "d         e",
        "7         8",
        "9         10",
    )
    assert [table[0] for table in found] == [["a", "b", "c"], ["d", "e"]]


def test_the_box_is_around_the_words() -> None:
    [table] = guess_tables(typed("a     b", "1     2", "3     4"))
    assert table.box == (50, 100, 50 + 7 * LETTER, 134)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["A single line"],
        ["Left     Right"],
        ["Left     Right", "Dear Sir, we thank you for your letter of last week", "and remain yours faithfully"],
        ["PT Simon          INVOICE", "A street 7", "A town", "NPWP 123          No. 7"],
        ["ragged      words", "   here   and", "there     without  any", "     order   at all"],
    ],
)
def test_no_table(lines: list[str]) -> None:
    assert rows(*lines) == []


PROSE = (
    "The gravel path bent around a quiet pond where ducks drifted in slow circles, and a wooden bench near the"
    " willow still held last week's newspaper under a stone. "
) * 12


def test_printed_prose_is_no_table(tmp_path: Path) -> None:
    style = getSampleStyleSheet()["BodyText"]
    style.alignment = 4  # justified, which makes wide gaps
    for columns in (1, 2, 3):
        blocks: list[Flowable] = []
        for _ in range(columns):
            blocks += [Paragraph(PROSE, style), FrameBreak()]
        found = [guess_tables(one) for one in printed(tmp_path, *blocks[:-1], columns=columns)]
        assert not any(found), columns


def test_a_printed_table_comes_back(tmp_path: Path) -> None:
    rng = random.Random(3)
    data = [["Article", "Pieces", "Price", "Total"]]
    data += [
        [f"Article number {n}", str(rng.randint(1, 999)), f"{rng.random() * 100:.2f}", f"{rng.random() * 9999:,.2f}"]
        for n in range(25)
    ]
    table = Table(data, style=[("ALIGN", (1, 0), (-1, -1), "RIGHT")])
    style = getSampleStyleSheet()["BodyText"]
    [only] = printed(tmp_path, Paragraph(PROSE[:900], style), table, Paragraph(PROSE[:300], style))
    assert [found.rows for found in guess_tables(only)] == [data]


@pytest.mark.parametrize("seed", range(6))
def test_the_lines_of_a_printed_invoice_are_rows(tmp_path: Path, seed: int) -> None:
    invoice, layout = make_invoice(seed, 40), make_layout(seed)
    found: set[str] = set()
    for one in of_pdf(tmp_path, print_invoice(invoice, layout)):
        for table in guess_tables(one):
            found |= {row[0] for row in table.rows if len(row) > 6}
    missing = {str(line.no) for line in invoice.lines} - found
    assert len(missing) <= 2  # a last page with more totals than lines may not look like a table


@given(
    st.lists(
        st.tuples(
            st.text("ab1.", min_size=1, max_size=8), st.integers(0, 500), st.integers(0, 300), st.integers(0, 20)
        ),
        max_size=60,
    )
)
def test_any_words_give_tables_with_equal_rows_and_no_other_words(spots: Sequence[tuple[str, int, int, int]]) -> None:
    words = [Word(text, x, y, x + 5 * len(text), y + height) for text, x, y, height in spots]
    tables = guess_tables(page(*words))
    read = sorted(text for table in tables for row in table.rows for cell in row for text in cell.split())
    given = sorted(word.text for word in words)
    for text in read:
        given.remove(text)
    assert all(len({len(row) for row in table.rows}) == 1 for table in tables)


def test_time_grows_with_the_number_of_words() -> None:
    def seconds(lines: int) -> float:
        text = [f"{n:<8}Description of {n:<20}{n * 7:>8} {n * 11:>12}" for n in range(lines)]
        whole = typed(*text)
        started = time.process_time()
        assert len(guess_tables(whole)[0].rows) == lines
        return time.process_time() - started

    seconds(100)
    small, large = min(seconds(500) for _ in range(3)), min(seconds(4000) for _ in range(3))
    assert large < 8 * 3 * small
