"""A file is what its content says, whatever it is called and however hostile it is."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill.files import FileType, detect, detect_bytes


def zipped(*names: str, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "<x/>")
        archive.comment = comment
    return buffer.getvalue()


def compound(*streams: str, sector_size: int = 512) -> bytes:
    """An OLE2 file with a directory of these streams and nothing in them."""
    shift = {512: 9, 4096: 12}[sector_size]
    per_sector = sector_size // 128
    entries = b"".join(_entry(name) for name in ("Root Entry", *streams))
    entries += b"\0" * (-len(entries) % sector_size)
    count = len(entries) // sector_size
    # Sector 0 is the allocation table; the directory's sectors follow, each naming the next.
    chain = [0xFFFFFFFD, *range(2, count + 1), 0xFFFFFFFE]
    table = struct.pack(f"<{len(chain)}I", *chain)
    table += b"\xff" * (sector_size - len(table))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16 + struct.pack("<HHHH", 0x3E, 3, 0xFFFE, shift)
    header += b"\0" * (48 - len(header)) + struct.pack("<I", 1)
    header += b"\0" * (76 - len(header)) + struct.pack("<I", 0) + b"\xff" * (4 * 108)
    assert per_sector
    return header + b"\0" * (sector_size - len(header)) + table + entries


def _entry(name: str) -> bytes:
    encoded = name.encode("utf-16-le") + b"\0\0"
    return (encoded + b"\0" * (64 - len(encoded)) + struct.pack("<H", len(encoded))).ljust(128, b"\0")


OPEN_XML = ("[Content_Types].xml", "_rels/.rels")
PADDING = tuple(f"Stream {number}" for number in range(20))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", FileType.EMPTY),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", FileType.PDF),
        (b"\xef\xbb\xbf\r\n%PDF-1.4\n", FileType.PDF),
        (b"\x1b%-12345X@PJL\r\n%PDF-1.4\n...startxref\n9\n%%EOF", FileType.PDF),
        (b"How to recognise a PDF: it starts with %PDF-1.4.", FileType.TEXT),
        (zipped(*OPEN_XML, "word/document.xml"), FileType.DOCX),
        (zipped(*OPEN_XML, "xl/workbook.xml"), FileType.XLSX),
        (zipped(*OPEN_XML, "ppt/presentation.xml"), FileType.PPTX),
        (zipped(*OPEN_XML, "word/document.xml", comment=b"PK\x05\x06 is in the comment"), FileType.DOCX),
        (zipped(*OPEN_XML, "word/document.xml", comment=b"hello"), FileType.DOCX),
        (zipped("word/document.xml"), FileType.ZIP),
        (zipped("invoice.pdf", "a/b.docx"), FileType.ZIP),
        (zipped(), FileType.ZIP),
        (zipped(*OPEN_XML, "word/document.xml")[:-30], FileType.DOCX),
        (zipped(*OPEN_XML, "xl/workbook.xml", "a")[:200], FileType.XLSX),
        (zipped(*OPEN_XML, "word/document.xml")[:60], FileType.DOCX),
        (zipped("word/document.xml", "a")[:-30], FileType.ZIP),
        (b"PK\x03\x04" * 20, FileType.ZIP),
        (compound("WordDocument"), FileType.DOC),
        (compound(*PADDING, "Workbook"), FileType.XLS),
        (compound(*PADDING, "Book", sector_size=4096), FileType.XLS),
        (compound("PowerPoint Document"), FileType.PPT),
        (compound("EncryptionInfo", "EncryptedPackage"), FileType.ENCRYPTED_OFFICE),
        (compound("__properties_version1.0"), FileType.OLE2),
        (compound("WordDocument")[:600], FileType.OLE2),
        (b'<?xml version="1.0"?><TaxInvoiceBulk/>', FileType.XML),
        ('\ufeff<?xml version="1.0" encoding="utf-16"?><a/>'.encode("utf-16-le"), FileType.XML),
        (b"  <!-- first --><root/>", FileType.XML),
        (b"<invoice number='1'/>", FileType.XML),
        (b"<!DOCTYPE html><html></html>", FileType.TEXT),
        (b"<3 this is no markup", FileType.TEXT),
        (b'{"a": [1, 2]}', FileType.JSON),
        (b"\xef\xbb\xbf[]", FileType.JSON),
        (b"{not json}", FileType.TEXT),
        (b'{"cut": ', FileType.TEXT),
        (b"[section]\nkey=value", FileType.TEXT),
        (json.dumps(list(range(50_000))).encode(), FileType.JSON),
        (b"[" * 60_000, FileType.TEXT),
        (b"name;amount\nSm\xf8rebr\xf8d;12,50\n", FileType.TEXT),
        ("請求書".encode(), FileType.TEXT),
        ("é".encode() * 40_000, FileType.TEXT),
        ("plain".encode("utf-16"), FileType.TEXT),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", FileType.PNG),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", FileType.JPEG),
        (gzip.compress(b"x", mtime=0), FileType.GZIP),
        (b"MZ\x90\0\x03\0\0\0", FileType.UNKNOWN),
        (b"\x7fELF\x02\x01\x01\0", FileType.UNKNOWN),
        (b"text with a \0 in it", FileType.UNKNOWN),
        (bytes(range(128, 256)), FileType.UNKNOWN),
    ],
)  # fmt: skip
def test_the_content_decides(content: bytes, expected: FileType) -> None:
    assert detect_bytes(content) is expected


def test_the_name_does_not(tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(b"MZ\x90\0\x03\0\0\0")
    with path.open("rb") as file:
        assert detect(file) is FileType.UNKNOWN


def test_reading_goes_on_where_it_stood() -> None:
    file = io.BytesIO(zipped(*OPEN_XML, "word/document.xml"))
    file.seek(7)
    assert detect(file) is FileType.DOCX
    assert file.tell() == 7


@given(st.binary(max_size=3000))
def test_any_bytes_have_a_type(content: bytes) -> None:
    assert detect_bytes(content) in FileType


@given(
    start=st.sampled_from([zipped(*OPEN_XML, "word/document.xml"), compound(*PADDING, "WordDocument")]),
    edits=st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=8)), max_size=20),
)
def test_a_damaged_container_has_one_too(start: bytes, edits: list[tuple[int, bytes]]) -> None:
    damaged = bytearray(start)
    for at, patch in edits:
        place = 8 + at % len(damaged)
        damaged[place : place + len(patch)] = patch
    assert detect_bytes(bytes(damaged)) in FileType


def test_a_directory_that_goes_in_circles_ends() -> None:
    circle = bytearray(compound(*PADDING, "WordDocument"))
    circle[512 + 4 : 512 + 8] = struct.pack("<I", 1)  # the directory's first sector names itself as the next
    assert detect_bytes(bytes(circle)) is FileType.OLE2


def test_a_huge_directory_costs_little(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number:0200}", b"")
    assert path.stat().st_size > 8_000_000
    with path.open("rb") as file:
        tracemalloc.start()
        assert detect(file) is FileType.ZIP
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2_000_000


def test_a_type_knows_how_to_declare_itself() -> None:
    assert FileType.PDF.media_type == "application/pdf"
    assert FileType.UNKNOWN.media_type == "application/octet-stream"
