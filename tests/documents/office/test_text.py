"""Text files in all common encodings, and CSV tables in them."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.office import OfficeLimits, detect, read_text
from waybill_documents.office.delimited import rows_of
from waybill_documents.office.text import clean
from waybill_documents.plain_document import PlainDocument

LETTER = "Grüße aus Köln\nSumme: 12,50 €\nCafé, naïve, façade\n"


def read(folder: Path, data: bytes) -> PlainDocument:
    path = folder / "note.bin"
    path.write_bytes(data)
    assert detect(path) == "text"
    return read_text(path)


@pytest.mark.parametrize(
    "data",
    [
        LETTER.encode(),
        codecs.BOM_UTF8 + LETTER.encode(),
        LETTER.encode("utf-16"),
        LETTER.encode("utf-16-le"),
        LETTER.encode("utf-16-be"),
        codecs.BOM_UTF16_BE + LETTER.encode("utf-16-be"),
        LETTER.encode("utf-32"),
        LETTER.encode("windows-1252"),
        LETTER.replace("\n", "\r\n").encode(),
        LETTER.replace("\n", "\r").encode(),
    ],
)
def test_every_encoding_gives_the_same_text(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data).pages[0].text == LETTER.strip()


def test_a_byte_that_windows_1252_does_not_know_is_no_fault(tmp_path: Path) -> None:
    assert read(tmp_path, "Köln".encode("latin-1") + b" costs \x8d 12 or so").pages[0].text == "Köln costs  12 or so"


def test_control_characters_and_terminal_colours_are_dropped() -> None:
    assert clean("a\x07b\x1b[31mred\x1b[0m\x00\ufeffc\td\x85e\u2028f") == "abredc\td\ne\nf"


def test_a_form_feed_turns_the_page(tmp_path: Path) -> None:
    document = read(tmp_path, b"page one\n\x0cpage two\n\x0c")
    assert [(page.number, page.text) for page in document.pages] == [(1, "page one"), (2, "page two")]


@pytest.mark.parametrize("data", [b"\x00\x01\x02" * 500, bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n" + bytes(50)])
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(data)
    assert detect(path) is None
    with pytest.raises(DocumentRejected) as fault:
        read_text(path)
    assert fault.value.code == FaultCode.UNREADABLE


@pytest.mark.parametrize("data", [b"", b"\n \n\t\n", codecs.BOM_UTF8])
def test_a_text_without_text_says_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "empty.txt"
    path.write_bytes(data)
    with pytest.raises(DocumentRejected) as fault:
        read_text(path)
    assert fault.value.code == FaultCode.NO_TEXT


def test_too_large_a_text_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(10**12)  # sparse: nobody could read it
    with pytest.raises(DocumentRejected) as fault:
        read_text(path)
    assert fault.value.code == FaultCode.TOO_MUCH_TEXT


def table(text: str) -> list[list[str]] | None:
    return rows_of(text, OfficeLimits())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3,4", [["a", "b"], ["1", "2"], ["3", "4"]]),
        ("a;b\n1,5;2\n3,5;4", [["a", "b"], ["1,5", "2"], ["3,5", "4"]]),
        ("a\tb\n1\t\n\n2\t3\n", [["a", "b"], ["1", ""], ["2", "3"]]),
        ("a|b|c\n1|2|3", [["a", "b", "c"], ["1", "2", "3"]]),
        ('"x, y",b\n"say ""hi""",2', [["x, y", "b"], ['say "hi"', "2"]]),
        ('"two\nlines",b\n1,2', [["two\nlines", "b"], ["1", "2"]]),
        ("sep=;\na;b", [["a", "b"]]),
        ("a, b, c, d, e\n1, 2, 3, 4, 5", [["a", "b", "c", "d", "e"], ["1", "2", "3", "4", "5"]]),
        ("date;amount\n" + "x;1\n" * 18 + "total", [["date", "amount"], *[["x", "1"]] * 18, ["total", ""]]),
    ],
)
def test_a_table_is_found(text: str, expected: list[list[str]]) -> None:
    assert table(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dear Sir, thank you\nfor the goods, they came",
        "One line, with a comma",
        "12,50\n13,75\n1.000,00",
        "Lorem ipsum, dolor; sit amet.\nConsectetur adipiscing\nelit, sed, do, eiusmod",
        'He said "hello\nand left, and never, came back',
        "No separators at all\nin two lines",
        "",
    ],
)
def test_prose_is_no_table(text: str) -> None:
    assert table(text) is None


@given(st.text())
def test_any_text_gives_equally_long_rows_or_none(text: str) -> None:
    rows = table(clean(text))
    assert rows is None or len({len(row) for row in rows}) == 1


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_a_fault(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(data)
    detect(path)
    try:
        read_text(path)
    except DocumentRejected as fault:
        assert fault.message  # noqa: PT017 - the other outcome is a text
