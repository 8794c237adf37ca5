"""Opens a PDF, or raises a `DocumentRejected` that says why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits


@contextmanager
def opened(source: Path, limits: PdfLimits) -> Iterator[pypdfium2.PdfDocument]:
    """The open document; it is closed at the end of the block. Its pages are read only on demand."""
    _forget_last_error()
    try:
        document = pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("pdf.encrypted")) from error
        raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("pdf.damaged")) from error
    try:
        pages = len(document)
        if pages == 0:
            raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("pdf.no_pages"))
        if pages > limits.pages:
            raise DocumentRejected(
                FaultCode.TOO_MANY_PAGES, DocumentMessage("pdf.too_many_pages", pages=pages, most=limits.pages)
            )
        document.init_forms()  # before its pages are opened; it does nothing where there is no form
        yield document
    finally:
        document.close()


def _forget_last_error() -> None:
    """Reset pdfium's last error. pdfium does not set it on every failure and would report the previous document's."""
    with suppress(pypdfium2.PdfiumError):
        pypdfium2.PdfDocument(b"not a PDF")
