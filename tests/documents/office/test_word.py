"""A Word document is read completely and in order, with the list numbers that Word shows."""

from __future__ import annotations

import io
from pathlib import Path

import docx
import pytest
from docx.document import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from support.workbooks import save, unpacked
from waybill_documents.office import read_word
from waybill_documents.plain_document import PlainDocument

MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
VML = 'xmlns:v="urn:schemas-microsoft-com:vml"'


def written(document: Document) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def read(folder: Path, document: Document) -> PlainDocument:
    path = folder / "letter.docx"
    path.write_bytes(written(document))
    return read_word(path)


def lines(folder: Path, document: Document) -> list[str]:
    return read(folder, document).pages[0].text.split("\n")


def body(document: Document, *elements: str) -> None:
    for element in elements:
        document.element.body.append(parse_xml(element))


def paragraph(inner: str) -> str:
    return f"<w:p {nsdecls('w')} {MC} {VML}>{inner}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_paragraphs_headings_and_tables_come_in_the_order_of_the_document(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Delivery note", 1)
    document.add_paragraph("Before the table")
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Item", "Pieces"), ("Bolt", "3")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.add_paragraph("After the table")
    found = read(tmp_path, document)
    assert found.pages[0].text == "Delivery note\nBefore the table\nItem\tPieces\nBolt\t3\nAfter the table"
    assert [list(map(list, table.rows)) for table in found.tables] == [[["Item", "Pieces"], ["Bolt", "3"]]]
    assert found.to_json()["source"] == {"kind": "docx", "pages": 1}


def test_headers_come_first_and_footers_last_each_once(tmp_path: Path) -> None:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "PT Simon"
    document.sections[0].footer.paragraphs[0].text = "Thank you"
    document.add_paragraph("One")
    document.add_section()
    document.add_paragraph("Two")
    assert lines(tmp_path, document) == ["PT Simon", "One", "Two", "Thank you"]


def test_lists_have_the_numbers_that_word_shows(tmp_path: Path) -> None:
    document = docx.Document()
    for text in ("first", "second"):
        document.add_paragraph(text, style="List Number")
    document.add_paragraph("point", style="List Bullet")
    document.add_paragraph("third", style="List Number")
    assert lines(tmp_path, document) == ["1. first", "2. second", "• point", "3. third"]


def test_merged_cells_are_there_once_and_columns_stay_in_line(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(rows=3, cols=3)
    for number, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = str(number)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    [found] = read(tmp_path, document).tables
    assert found.rows == [["wide", "", "2"], ["3", "4", "tall"], ["6", "7", ""]]


def test_a_table_in_a_table_is_listed_after_it(tmp_path: Path) -> None:
    document = docx.Document()
    outer = document.add_table(rows=1, cols=2)
    outer.cell(0, 0).text = "outside"
    inner = outer.cell(0, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "in", "side"
    found = [table.rows for table in read(tmp_path, document).tables]
    assert found == [[["outside", "in\tside"]], [["in", "side"]]]


DELETED = '<w:del w:id="1"><w:r><w:delText>old</w:delText></w:r></w:del>'
BOX = f"<w:txbxContent>{paragraph(run('boxed'))}</w:txbxContent>"
CHOICE = (
    f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{BOX}</mc:Choice>'
    f"<mc:Fallback><w:pict><v:textbox>{BOX}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (run("a") + "<w:r><w:tab/></w:r>" + run("b"), ["a\tb"]),
        (run("a") + "<w:r><w:br/></w:r>" + run("b"), ["a", "b"]),
        (run("a") + "<w:r><w:noBreakHyphen/></w:r>" + run("b"), ["a-b"]),
        (DELETED + f'<w:ins w:id="2">{run("new")}</w:ins>', ["new"]),
        (f"<w:sdt><w:sdtContent>{run('chosen')}</w:sdtContent></w:sdt>", ["chosen"]),
        (f"<w:hyperlink>{run('link')}</w:hyperlink>", ["link"]),
        ("<w:r><w:instrText>PAGE</w:instrText></w:r>" + run("7"), ["7"]),
        (run("around") + CHOICE, ["around", "boxed"]),
        ("", [""]),
    ],
)
def test_what_is_seen_is_read_and_what_is_not_is_not(tmp_path: Path, inner: str, expected: list[str]) -> None:
    document = docx.Document()
    body(document, paragraph(inner))
    assert lines(tmp_path, document) == expected


def test_footnotes_follow_the_text(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Text")
    parts = unpacked(written(document))
    parts["word/footnotes.xml"] = (
        f'<w:footnotes {nsdecls("w")}><w:footnote w:type="separator" w:id="-1">{paragraph(run("no"))}</w:footnote>'
        f'<w:footnote w:id="1">{paragraph(run("A note"))}</w:footnote></w:footnotes>'
    )
    assert read_word(save(tmp_path / "noted.docx", parts)).pages[0].text == "Text\nA note"


def test_a_document_with_macros_is_read_without_them(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Text")
    parts = unpacked(written(document))
    types = parts["[Content_Types].xml"]
    assert isinstance(types, bytes)
    parts["[Content_Types].xml"] = types.replace(
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        b"application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    parts["word/vbaProject.bin"] = b"\xd0\xcf\x11\xe0 macros"
    assert read_word(save(tmp_path / "macros.docm", parts)).pages[0].text == "Text"


def test_the_corpus(shared_data: Path) -> None:
    office = shared_data / "office"
    listed = read_word(office / "docx_lists.docx").pages[0].text.split("\n")
    for line in ("  1.1 Morning Walk", "2. WEEKEND ERRAND LIST", "    • Return the borrowed library novels"):
        assert line in listed
    assert read_word(office / "lorem_ipsum.docx").pages[0].text.startswith("Lorem ipsum dolor sit amet")
    headed = read_word(office / "unit_test_headers.docx").pages[0].text.split("\n")
    assert headed[:3] == ["Test Document", "Section 1", "Paragraph 1.1"]
    tables = read_word(office / "word_tables.docx").tables
    assert [(len(table.rows), len(table.rows[0])) for table in tables] == [
        (3, 3), (3, 3), (3, 4), (5, 3), (9, 5), (2, 2), (2, 3),
    ]  # fmt: skip
    assert tables[2].rows[1] == ["Cell 1.0", "Merged Cell 1.1 1.2", "", "Cell 1.3"]
    assert tables[5].rows[1] == ["", "Cell 1.1"]
