"""Writes an e-invoice in the syntax that was asked for.

An invoice that lost something in conversion may be worse than none, so the choice is the caller's: `strict` refuses an
invoice that says more than both syntaxes can say, `lenient` converts it and lists every detail that was dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice
from waybill_documents.hybrid.en16931 import Detail, Syntax, write
from waybill_documents.hybrid.en16931.syntaxes import path_of
from waybill_documents.hybrid.validity import validate, validate_written
from waybill_documents.messages import DocumentMessage
from waybill_documents.xml_output.validation import MOST_FINDINGS, and_more
from waybill_documents.xml_output.value_spelling import DECLARATION


class Loss(StrEnum):
    """What becomes of details that the other syntax has no place for."""

    STRICT = "strict"
    LENIENT = "lenient"


@dataclass(frozen=True, slots=True)
class Converted:
    """The document in UTF-8, and a finding for each detail of the source that it does not have."""

    xml: bytes
    dropped: tuple[Finding, ...] = ()


def convert(embedded: EmbeddedInvoice, syntax: Syntax, *, loss: Loss = Loss.STRICT, pretty: bool = False) -> Converted:
    """The invoice in a syntax. In its own, it stays as it is; ZUGFeRD 1 is written anew in both.

    Raises DocumentRejected INVALID_XML when the source does not fit its schema or lacks what the other one demands, and
    UNSUPPORTED_CONSTRUCT when details would be lost that may not be.
    """
    validate(embedded)
    if syntax is embedded.syntax and embedded.from_zugferd_1 is None:
        return Converted(_unchanged(embedded))
    if "BG-25" not in embedded.read.invoice:
        raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, _no_lines(embedded, syntax))
    root, lost = write(embedded.read.invoice, syntax)
    left = [*embedded.read.left_over]
    left += [Detail(path_of(value.at) if value.at is not None else "", value.text) for value in lost]
    if left and loss is Loss.STRICT:
        findings = [_no_place(detail, syntax) for detail in left[:MOST_FINDINGS]]
        more = and_more(findings, len(left) - len(findings) + embedded.read.more_left_over)
        raise DocumentRejected(FaultCode.UNSUPPORTED_CONSTRUCT, _beyond(syntax), more)
    if pretty:
        etree.indent(root)
    validate_written(root, syntax, embedded.profile, embedded.read.invoice)
    xml = DECLARATION.encode() + etree.tostring(root, encoding="UTF-8", xml_declaration=False) + b"\n"
    dropped = [_no_place(detail, syntax) for detail in (*left, *embedded.read.fillers)]
    return Converted(xml, and_more(dropped, embedded.read.more_left_over))


def _unchanged(embedded: EmbeddedInvoice) -> bytes:
    """Byte for byte, or converted to UTF-8 from any other encoding.

    It is also sent inside JSON, which is UTF-8, and must not declare another encoding there.
    """
    document = embedded.root.getroottree()
    if (document.docinfo.encoding or "UTF-8").upper() in {"UTF-8", "US-ASCII", "ASCII"}:
        return embedded.xml
    return etree.tostring(document, encoding="UTF-8", xml_declaration=True)


def _no_lines(embedded: EmbeddedInvoice, syntax: Syntax) -> DocumentMessage:
    if syntax is Syntax.UBL:
        return DocumentMessage("embedded.no_lines", profile=embedded.profile.name)
    return DocumentMessage("embedded.no_lines_for_cii")


def _beyond(syntax: Syntax) -> DocumentMessage:
    return DocumentMessage("embedded.beyond_ubl") if syntax is Syntax.UBL else DocumentMessage("embedded.beyond_cii")


def _no_place(detail: Detail, syntax: Syntax) -> Finding:
    value = _short(detail.value)
    if syntax is Syntax.UBL:
        message = DocumentMessage("embedded.no_place_in_ubl", element=detail.path, value=value)
    else:
        message = DocumentMessage("embedded.no_place_in_cii", element=detail.path, value=value)
    return Finding(FaultCode.UNSUPPORTED_CONSTRUCT, message, rule=f"en16931_{syntax}")


def _short(value: str) -> str:
    return value if len(value) <= 80 else value[:79] + "…"
