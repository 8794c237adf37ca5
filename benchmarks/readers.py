"""Waybill's ways to read a PDF, and bare pypdfium2 as the floor below them.

All in a process prepared as the gateway prepares its parsers; what they do after a document is on our account.
"""

from __future__ import annotations

import time
from pathlib import Path

import pypdfium2

from benchmarks import reader_protocol
from waybill_documents.conversion import convert
from waybill_documents.extraction import extract
from waybill_documents.limits import Limits
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.words import pages
from waybill_documents.stages import Stages
from waybill_gateway.sandbox import garbage

_LIMITS = Limits()


def xml(file: str, mapping: str) -> int:
    """The whole way, as the gateway goes it: words, table, fields, checks, XML, validated."""
    answer = convert(Path(file), "pdf", mapping=_mapping(mapping), wants="xml", clock=time.perf_counter)
    size = len(answer.body)
    del answer
    garbage.collect()
    return size


def extraction(file: str, mapping: str) -> int:
    """Typed values with their places, without checks and XML."""
    with opened(Path(file), _LIMITS) as document:
        read = extract(pages(document, _LIMITS), len(document), _mapping(mapping).mapping, Stages(time.perf_counter))
    return sum(map(len, read.extracted.tables.values())) + len(read.extracted.fields)


def words(file: str, _mapping: str) -> int:
    """Words with boxes, each page forgotten before the next."""
    with opened(Path(file), _LIMITS) as document:
        return sum(len(page.words) for page in pages(document, _LIMITS))


def pdfium_text(file: str, _mapping: str) -> int:
    """The text alone: nothing that needs text can be faster."""
    document = pypdfium2.PdfDocument(file)
    found = sum(len(page.get_textpage().get_text_range()) for page in document)
    document.close()
    return found


def pdfium_boxes(file: str, _mapping: str) -> int:
    """Text and the box of every character: what a program pays that builds words from pypdfium2's own API."""
    document = pypdfium2.PdfDocument(file)
    found = 0
    for page in document:
        text_page = page.get_textpage()
        text_page.get_text_range()
        count = text_page.count_chars()
        found += len([text_page.get_charbox(index) for index in range(count)])
    document.close()
    return found


def _mapping(name: str) -> LoadedMapping:
    mapping = shipped(name)
    assert mapping is not None, f"there is no mapping {name}"
    return mapping


if __name__ == "__main__":
    garbage.only_between_documents()
    reader_protocol.serve(
        {
            "xml": xml,
            "extraction": extraction,
            "words": words,
            "pdfium text": pdfium_text,
            "pdfium boxes": pdfium_boxes,
        }
    )
