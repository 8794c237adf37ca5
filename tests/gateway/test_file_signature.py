"""A document is what its bytes say."""

from __future__ import annotations

import codecs
import io
import zipfile
from pathlib import Path

import pytest

from waybill_gateway.content_negotiation import OFFERS
from waybill_gateway.file_signature import KINDS, sniff


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "<x/>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n", "pdf"),
        (b"\r\n  %PDF-1.4", "pdf"),
        (b"x" * 1024 + b"%PDF-1.4", "pdf"),
        (b"x" * 1025 + b"%PDF-1.4", "text"),
        (b"@PJL SET\n%PDF-1.4\n\xff\xfe", "pdf"),
        (b"%PD", "text"),
        (b'{"a": 1}', "json"),
        (b" \n\t[1, 2]", "json"),
        (codecs.BOM_UTF8 + b"{}", "json"),
        (b'{"about": "%PDF-1.7"}', "json"),
        (b"{" + b"\xff\xfe", "unknown"),
        (b"{\0}", "unknown"),
        ('{"a": 1}'.encode("utf-16"), "text"),
        ("{ü".encode() * 30_000, "json"),
        (b'"text"', "text"),
        (b"12", "text"),
        (b"a;b\n1;2\n", "text"),
        ("Grüße".encode("utf-16"), "text"),
        ("Grüße aus Köln, wie immer.".encode("latin-1"), "text"),
        (b"<!DOCTYPE html><html/>", "text"),
        (b"", "empty"),
        (b"   ", "empty"),
        (b"PK\x03\x04", "zip"),
        (zipped("a.txt", "b/word/document.xml"), "zip"),
        (zipped("[Content_Types].xml", "word/document.xml"), "docx"),
        (zipped("[Content_Types].xml", "word/document.xml")[:-30], "docx"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "xlsx"),
        (zipped("[Content_Types].xml", "ppt/presentation.xml"), "pptx"),
        (b"<xml/>", "xml"),
        (b"<?xml version='1.0'?>\n<Invoice/>", "xml"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"{%PDF-1.7\n\xe2\xe3\xcf\xd3", "pdf"),
    ],
)
def test_the_content_tells(tmp_path: Path, content: bytes, kind: str) -> None:
    file = tmp_path / "looks-like.pdf"
    file.write_bytes(content)
    assert sniff(file) == kind


def test_everything_that_is_read_can_become_something() -> None:
    assert {offer.kind for offer in OFFERS} == set(KINDS.values())
