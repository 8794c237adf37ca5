"""A document is what its bytes say."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from waybill_gateway.file_signature import sniff


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n", "pdf"),
        (b"\r\n  %PDF-1.4", "pdf"),
        (b"x" * 1024 + b"%PDF-1.4", "pdf"),
        (b"x" * 1025 + b"%PDF-1.4", None),
        (b"@PJL SET\n%PDF-1.4\n\xff\xfe", "pdf"),
        (b"%PD", None),
        (b'{"a": 1}', "json"),
        (b" \n\t[1, 2]", "json"),
        (codecs.BOM_UTF8 + b"{}", "json"),
        (b'{"about": "%PDF-1.7"}', "json"),
        (b"{" + b"\xff\xfe", None),
        (b"{\0}", None),
        ("{ü".encode() * 30_000, "json"),
        (b'"text"', None),
        (b"12", None),
        (b"", None),
        (b"   ", None),
        (b"PK\x03\x04", None),
        (b"<xml/>", None),
        (b"{%PDF-1.7\n\xe2\xe3\xcf\xd3", "pdf"),
    ],
)
def test_the_first_bytes_tell(tmp_path: Path, content: bytes, kind: str | None) -> None:
    file = tmp_path / "looks-like.pdf"
    file.write_bytes(content)
    assert sniff(file) == kind
