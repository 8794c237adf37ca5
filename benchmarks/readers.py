"""Waybill's steps of reading a PDF, and bare pypdfium2 as their floor.

All run in a process that is prepared as the gateway prepares its parsers. What they do after a document counts as our
time.
"""

from __future__ import annotations

import ctypes
import json
import time
from functools import cache
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from benchmarks import reader_protocol
from waybill_convert.review_work import preview
from waybill_documents.candidates import Candidates
from waybill_documents.conversion import convert
from waybill_documents.document_reader import read_pdf
from waybill_documents.extraction import extract
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.stages import Stages
from waybill_gateway.mappings import Mappings
from waybill_gateway.sandbox import garbage_collection
from waybill_gateway.sent_catalogues import SentCatalogues
from waybill_gateway.sent_mappings import CompiledMappings, read_sent

_LIMITS = PdfLimits()
_COMPILED = CompiledMappings()
_CATALOGUES = SentCatalogues(Mappings(), _COMPILED)


def xml(file: str, mapping: str) -> int:
    """Everything that the gateway does: words, table, fields, checks, and validated XML."""
    return _converted(file, _mapping(mapping))


def named(file: str, sent: str) -> int:
    """The same by the first mapping that came with the document."""
    mappings = read_sent(Path(sent).read_bytes(), _COMPILED)
    mapping = mappings.get(next(iter(mappings.files)))
    assert mapping is not None
    return _converted(file, mapping)


def auto(file: str, sent: str) -> int:
    """The same by the mapping that the document chooses among those that came with it, and the gateway's own."""
    return _converted(file, _CATALOGUES.get(Path(sent)))


def _converted(file: str, mapping: LoadedMapping | Candidates) -> int:
    answer = convert(Path(file), "pdf", mapping=mapping, wants="xml", clock=time.perf_counter)
    size = len(answer.body)
    del answer
    garbage_collection.collect()
    return size


def extraction(file: str, mapping: str) -> int:
    """Typed values with their places, without checks and XML."""
    with opened(Path(file), _LIMITS) as document:
        read = extract(pages(document, _LIMITS), len(document), _mapping(mapping).mapping, Stages(time.perf_counter))
    return sum(map(len, read.extracted.tables.values())) + len(read.extracted.fields)


def words(file: str, _mapping: str) -> int:
    """Words with boxes; each page is dropped before the next."""
    with opened(Path(file), _LIMITS) as document:
        return sum(len(page.words) for page in pages(document, _LIMITS))


def pdfium_text(file: str, _mapping: str) -> int:
    """The text alone. No program that needs the text can be faster."""
    document = pypdfium2.PdfDocument(file)
    found = sum(len(page.get_textpage().get_text_range()) for page in document)
    document.close()
    return found


def pdfium_boxes(file: str, _mapping: str) -> int:
    """Text and the box of every character, as a program needs them that builds words with pypdfium2's own API."""
    document = pypdfium2.PdfDocument(file)
    found = 0
    for page in document:
        text_page = page.get_textpage()
        text_page.get_text_range()
        count = text_page.count_chars()
        found += len([text_page.get_charbox(index) for index in range(count)])
    document.close()
    return found


def pdfium_direct(file: str, _mapping: str) -> int:
    """The same by direct calls, with one box for all characters: the floor for a program that needs every box."""
    document = pypdfium2.PdfDocument(file)
    box = raw.FS_RECTF()
    reference = ctypes.byref(box)
    found = 0
    for page in document:
        text_page = page.get_textpage()
        text_page.get_text_range()
        for index in range(text_page.count_chars()):
            found += raw.FPDFText_GetLooseCharBox(text_page.raw, index, reference)
    document.close()
    return found


def correction(file: str, mapping: str) -> int:
    """What a page asks for while a person types: what would change if one value were another one."""
    shown = preview(_record(file, mapping), None, [("lines[3].qty", "7")])
    return len(shown.moved)


@cache
def _record(file: str, mapping: str) -> bytes:
    read = read_pdf(Path(file), _mapping(mapping), _LIMITS, Stages(time.perf_counter))
    return json.dumps(read.to_json()).encode()


def _mapping(name: str) -> LoadedMapping:
    mapping = shipped(name)
    assert mapping is not None, f"there is no mapping {name}"
    return mapping


if __name__ == "__main__":
    garbage_collection.only_between_documents()
    reader_protocol.serve(
        {
            "xml": xml,
            "named": named,
            "auto": auto,
            "extraction": extraction,
            "words": words,
            "pdfium text": pdfium_text,
            "pdfium boxes": pdfium_boxes,
            "pdfium direct": pdfium_direct,
            "correction": correction,
        }
    )
