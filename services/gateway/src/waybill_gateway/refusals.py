"""Every refusal of the gateway, with its status, code and message. `docs/gateway.md` lists them for users.

What the gateway says itself is a message of the platform. What it says about a document or a mapping comes from the
document library, with a key of that library's catalogues.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any

from waybill.errors import Code
from waybill.files import FileType
from waybill.http import Problem
from waybill.http.multipart import BadForm
from waybill.http.problems import message_of
from waybill.messages import Message, msg
from waybill_documents.faults import FaultCode, Finding
from waybill_documents.messages import DocumentMessage
from waybill_gateway.file_signature import SAVE_ANEW

_RECOVERY = 5
"""Seconds to wait for a gateway whose parsers are being killed. At once, the same would probably happen again."""


class Refusal(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        code: Code,
        says: str | Message,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(str(says))
        self.status = status
        self.code = code
        self.says = says
        """A plain string has its key among `more`: the document library has catalogues of its own."""
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    @property
    def key(self) -> str | None:
        """The message's key. Its sentence and parameters may quote the request or the document."""
        return self.says.key if isinstance(self.says, Message) else self.more.get("key")

    def problem(self, headers: Mapping[str, str], members: Mapping[str, str]) -> Problem:
        """The answer to a request that adds these headers, and these members to the document."""
        return Problem(self.status, self.code, self.says, {**headers, **self.headers}, more={**self.more, **members})


class FatalDocument(Refusal):
    """A document killed its parser."""

    def __init__(self, fault: FaultCode, message: DocumentMessage) -> None:
        findings = [Finding(fault, message).to_json()]
        more = {"key": message.key, "params": message.params, "fault": fault.value, "findings": findings}
        super().__init__(422, Code.PARSE_ERROR, message.english, more=more)
        self.fault = fault
        self.message = message


def bad_form(says: Message) -> Refusal:
    return Refusal(400, Code.VALIDATION_ERROR, says)


def unreadable_form(error: BadForm) -> Refusal:
    return Refusal(400, Code.VALIDATION_ERROR, message_of(error))


def mapping_missing(media_type: str) -> Refusal:
    return Refusal(400, Code.BAD_MAPPING, msg("gateway.mapping_missing", media_type=media_type))


def mapping_unknown(name: str, known: Sequence[str]) -> Refusal:
    says = msg("gateway.mapping_unknown", name=name[:100])
    return Refusal(400, Code.BAD_MAPPING, says, more={"mappings": list(known)})


def mappings_unproven() -> Refusal:
    return Refusal(403, Code.FORBIDDEN, msg("gateway.mappings_unproven"))


def unproven() -> Refusal:
    return Refusal(403, Code.FORBIDDEN, msg("gateway.unproven"))


def not_a_pack(reason: str) -> Refusal:
    return Refusal(400, Code.VALIDATION_ERROR, msg("gateway.not_a_pack", reason=reason))


def mapping_unfit(detail: str, key: str | None, params: Mapping[str, Any]) -> Refusal:
    """For a mapping that cannot be used for this. The parser describes why, in the document library's words."""
    return Refusal(400, Code.BAD_MAPPING, detail, more={"key": key, "params": dict(params)})


def not_acceptable(says: Message) -> Refusal:
    return Refusal(406, Code.VALIDATION_ERROR, says)


def too_slow(seconds: float) -> Refusal:
    return Refusal(408, Code.TIMEOUT, msg("gateway.too_slow", seconds=round(seconds)))


def too_large(megabytes: int) -> Refusal:
    return Refusal(413, Code.TOO_LARGE, msg("gateway.too_large", megabytes=megabytes))


def unread(found: FileType) -> Refusal:
    """For a file that is nothing we read. Where the sender can do something about it, the sentence says what."""
    if found is FileType.ENCRYPTED_OFFICE:
        return document_fault(FaultCode.ENCRYPTED, DocumentMessage("office.encrypted"))
    if found in SAVE_ANEW:
        says = SAVE_ANEW[found]
        return Refusal(415, Code.NOT_PDF, says.english, more={"key": says.key})
    return Refusal(415, Code.NOT_PDF, msg("gateway.not_a_document"))


def not_a_pdf() -> Refusal:
    return Refusal(415, Code.NOT_PDF, msg("gateway.not_a_pdf"))


def document_fault(fault: FaultCode, says: DocumentMessage) -> FatalDocument:
    """For a document that killed its parser. A parser that survives describes the fault itself."""
    return FatalDocument(fault, says)


def broken() -> Refusal:
    return Refusal(502, Code.GW_5XX, msg("gateway.broken"))


def saturated(retry_after: int, says: Message | None = None) -> Refusal:
    headers = {"Retry-After": str(retry_after)}
    return Refusal(503, Code.NOT_READY, says or msg("gateway.busy"), headers=headers)


def parser_killed(retry_after: int) -> Refusal:
    """For a document whose parser was killed from outside, also when it ran alone. It may be innocent."""
    return saturated(max(retry_after, _RECOVERY), msg("gateway.parser_killed"))


def disk_full() -> Refusal:
    return Refusal(507, Code.IO_ERROR, msg("storage.full_try_again"))


def not_stored(error: OSError) -> Refusal:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    return Refusal(507, Code.IO_ERROR, msg("gateway.not_stored"))
