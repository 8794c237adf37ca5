"""Opening a PDF, or saying in words why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.limits import Limits


@contextmanager
def opened(source: Path, limits: Limits) -> Iterator[pypdfium2.PdfDocument]:
    """The document, closed again at the end. Its pages are only read when they are asked for."""
    _forget_last_error()
    try:
        document = pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise DocumentFault(
                FaultCode.ENCRYPTED, "The PDF is protected by a password. Save it without one and send it again."
            ) from error
        raise DocumentFault(
            FaultCode.UNREADABLE, "The PDF is damaged or incomplete: its structure cannot be read."
        ) from error
    try:
        pages = len(document)
        if pages == 0:
            raise DocumentFault(FaultCode.UNREADABLE, "The PDF has no pages.")
        if pages > limits.pages:
            raise DocumentFault(
                FaultCode.TOO_MANY_PAGES, f"The PDF has {pages:,} pages; at most {limits.pages:,} are read."
            )
        yield document
    finally:
        document.close()


def _forget_last_error() -> None:
    """pdfium does not say every time why it failed; it would then repeat what it said of the document before."""
    with suppress(pypdfium2.PdfiumError):
        pypdfium2.PdfDocument(b"not a PDF")
