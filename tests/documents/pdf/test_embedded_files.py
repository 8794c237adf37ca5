"""The files inside a PDF are listed and handed out within limits, whatever they claim to be."""

from __future__ import annotations

import ctypes
import hashlib
from pathlib import Path

import pypdfium2
import pypdfium2.raw
import pytest

from support import bad_pdfs
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid import embedded_in
from waybill_documents.pdf.embedded_files import EmbeddedFile, embedded_file, embedded_files
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened


def pdf(folder: Path, *attachments: tuple[str, bytes]) -> Path:
    document = pypdfium2.PdfDocument.new()
    document.new_page(595, 842)
    for name, content in attachments:
        document.new_attachment(name).set_data(content)
    file = folder / "a.pdf"
    document.save(str(file))
    document.close()
    return file


def listed(file: Path, limits: PdfLimits | None = None) -> list[EmbeddedFile]:
    with opened(file, limits or PdfLimits()) as document:
        return embedded_files(document, limits or PdfLimits())


def taken(file: Path, number: int, limits: PdfLimits | None = None) -> bytes:
    with opened(file, limits or PdfLimits()) as document:
        return embedded_file(document, number, limits or PdfLimits())


def test_each_file_is_listed_and_comes_out_as_it_went_in(tmp_path: Path) -> None:
    contents = {
        "terms.txt": b"terms",
        "data.xlsx": b"PK\x03\x04",
        "0.bin": bytes(range(256)) * 1000,
        "README": b"read me",
    }
    file = pdf(tmp_path, *contents.items())
    found = listed(file)
    assert [each.number for each in found] == [1, 2, 3, 4]
    assert {each.name for each in found} == contents.keys()
    for each in found:
        content = contents[each.name]
        assert taken(file, each.number) == content
        assert each.bytes == len(content)
        assert each.sha256 == hashlib.sha256(content).hexdigest()
    types = {each.name: each.media_type for each in found}
    assert types["terms.txt"] == "text/plain"
    assert types["README"] == "application/octet-stream"


def test_the_declared_type_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(bad_pdfs.with_attachment(b"<a/>"))
    assert [(each.name, each.media_type) for each in listed(file)] == [("factur-x.xml", "text/xml")]


def test_a_pdf_without_files_has_none(tmp_path: Path) -> None:
    assert listed(pdf(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [("../../etc/passwd", "passwd"), ("C:\\temp\\a.exe", "a.exe"), ("a\u202egnp.exe", "agnp.exe"), ("\n", "1")],
)
def test_a_name_is_only_a_name(tmp_path: Path, name: str, shown: str) -> None:
    assert [each.name for each in listed(pdf(tmp_path, (name, b"x")))] == [shown]


def test_half_a_character_in_a_name_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    document = pypdfium2.PdfDocument.new()
    document.new_page(595, 842)
    name = ctypes.create_string_buffer("a\ud800.txt\0".encode("utf-16-le", "surrogatepass"))
    pypdfium2.raw.FPDFDoc_AddAttachment(document, ctypes.cast(name, ctypes.POINTER(pypdfium2.raw.FPDF_WCHAR)))
    document.get_attachment(0).set_data(b"x")
    document.save(str(file))
    document.close()
    assert [each.name for each in listed(file)] == ["a\ufffd.txt"]
    with opened(file, PdfLimits()) as opened_again:
        assert embedded_in(opened_again, PdfLimits()) is None


def test_limits_bound_what_is_listed_and_read(tmp_path: Path) -> None:
    file = pdf(tmp_path, *((f"{number}.txt", b"x" * 60) for number in range(5)))
    limits = PdfLimits(attachments=3, attachment_bytes=100)
    found = listed(file, limits)
    assert [each.bytes for each in found] == [60, 60, 60]
    assert [each.sha256 is None for each in found] == [False, True, True]
    assert taken(file, 3, limits) == b"x" * 60
    for number, small, code in (
        (4, limits, "no_such_attachment"),
        (1, PdfLimits(attachment_bytes=59), "too_much_text"),
    ):
        with pytest.raises(DocumentRejected) as refused:
            taken(file, number, small)
        assert refused.value.code is FaultCode(code)
