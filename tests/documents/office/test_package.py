"""A package is read as it is, whichever of the two editions of Open XML wrote it."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest

from support.workbooks import packed, sheet, sheet_xml, strict, workbook_parts
from waybill_documents.office import detect, read, read_excel, read_word

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "office"


def test_strict_open_xml_is_read_like_any_other(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("there is no ../shared/data beside the repository")
    copy = tmp_path / "strict"
    for path in SHARED.iterdir():
        copy.write_bytes(strict(path.read_bytes()))
        assert copy.read_bytes() != path.read_bytes()
        assert detect(copy) == detect(path)
        assert read(copy).to_json() == read(path).to_json(), path.name


def test_dates_of_a_strict_workbook_are_written_out(tmp_path: Path) -> None:
    cells = '<c r="A1" t="d"><v>2025-08-07</v></c><c r="B1" t="d"><v>2025-08-07T10:20:30</v></c>'
    book = packed(workbook_parts({"One": sheet_xml(f'<row r="1">{cells}</row>'), "Two": sheet([["total", 12.5]])}))
    path = tmp_path / "book.xlsx"
    path.write_bytes(strict(book))
    read = read_excel(path)
    assert [page.text for page in read.pages] == ["2025-08-07\t2025-08-07T10:20:30", "total\t12.5"]


def test_text_about_strict_open_xml_stays_as_it_is(tmp_path: Path) -> None:
    text = 'See http://purl.oclc.org/ooxml/wordprocessingml/main and "http://purl.oclc.org/ooxml/drawingml/main".'
    document = docx.Document()
    document.add_paragraph(text)
    path = tmp_path / "letter.docx"
    document.save(str(path))
    assert read_word(path).pages[0].text == text
