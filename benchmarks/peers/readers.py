"""The peers' ways to read a PDF: pdfplumber's words, and invoice2data with the templates it ships."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import pdfplumber
from invoice2data import extract_data
from invoice2data import input as backends
from invoice2data.extract.loader import read_templates

from benchmarks import reader_protocol


def pdfplumber_words(file: str, _mapping: str) -> int:
    """Words with boxes and nothing more. Each page is closed before the next, as pdfplumber's manual advises."""
    found = 0
    with pdfplumber.open(file) as document:
        for page in document.pages:
            found += len(page.extract_words())
            page.close()
    return found


def invoice2data(file: str, _mapping: str) -> int:
    """The number of fields that its template finds; none if none of its text readers gives what the template needs."""
    backends._cached_to_text.cache_clear()  # it caches a file's text, but in production no invoice comes twice
    return len(extract_data(file, templates=_templates()))


@cache
def _templates() -> Any:
    return read_templates()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # standard output is for answers
    _templates()
    reader_protocol.serve({"pdfplumber words": pdfplumber_words, "invoice2data": invoice2data})
