"""Every refusal of the gateway, with its status and code. `docs/gateway.md` lists them for users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waybill.errors import Code
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.messages import DocumentMessage

_RECOVERY = 5
"""Seconds to wait for a gateway whose parsers are being killed. At once, the same would probably happen again."""


class Refusal(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        code: Code,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail or code.value)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = dict(more or {})


def bad_form(detail: str) -> Refusal:
    return Refusal(400, Code.VALIDATION_ERROR, detail)


def mapping_missing(media_type: str) -> Refusal:
    return Refusal(400, Code.BAD_MAPPING, f"{media_type} needs a mapping: name one in the form field 'mapping'.")


def mapping_unknown(name: str, known: Sequence[str]) -> Refusal:
    detail = f"There is no mapping {name[:100]!r}. Please choose one from the list."
    return Refusal(400, Code.BAD_MAPPING, detail, more={"mappings": list(known)})


def mapping_unfit(detail: str) -> Refusal:
    return Refusal(400, Code.BAD_MAPPING, detail)


def not_acceptable(detail: str) -> Refusal:
    return Refusal(406, Code.VALIDATION_ERROR, detail)


def too_slow(seconds: float) -> Refusal:
    return Refusal(408, Code.TIMEOUT, f"The document arrived too slowly. We stopped after {seconds:.0f} s.")


def too_large(megabytes: int) -> Refusal:
    return Refusal(413, Code.TOO_LARGE, f"This file is larger than {megabytes} MB. Please send a smaller one.")


def not_a_document() -> Refusal:
    return Refusal(415, Code.NOT_PDF, "This file is neither a PDF nor a JSON document.")


def not_a_pdf() -> Refusal:
    return Refusal(415, Code.NOT_PDF, "Only a PDF has pages, and this is a JSON document.")


def document_fault(code: FaultCode, message: DocumentMessage) -> Refusal:
    """For a document that killed its parser. A parser that survives describes the fault itself."""
    findings = [Finding(code, message).to_json()]
    return Refusal(422, Code.PARSE_ERROR, message.english, more={"fault": code.value, "findings": findings})


def broken() -> Refusal:
    return Refusal(502, Code.GW_5XX, "The converter failed because of a bug, not because of the document.")


def saturated(retry_after: int, detail: str = "All parsers are busy. Please try again in a moment.") -> Refusal:
    return Refusal(503, Code.NOT_READY, detail, headers={"Retry-After": str(retry_after)})


def parser_killed(retry_after: int) -> Refusal:
    """For a document whose parser was killed from outside, also when it ran alone. It may be innocent."""
    detail = "The gateway is short of memory: its parser was killed from outside. Please try again in a moment."
    return saturated(max(retry_after, _RECOVERY), detail)


def no_storage(detail: str) -> Refusal:
    return Refusal(507, Code.IO_ERROR, detail)
