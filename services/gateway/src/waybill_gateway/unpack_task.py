"""What a parser does with a ZIP: it unpacks a part of it, as long as time and room allow, and says where to go on.

This runs in the sandbox, so it imports nothing of the service.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from waybill.errors import Code
from waybill.files import FileType
from waybill_documents.archives import ArchiveLimits, LimitReached, Unpacker, ZipMember, ZipPlace
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_gateway.file_signature import sniff, sniff_opened
from waybill_gateway.part_writer import PartWriter

_OFFICE = (FileType.DOCX, FileType.XLSX, FileType.PPTX)


def unpack(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    """Write frames until the part is full. The note says where the next part begins; None if this was the last."""
    source, wish = Path(call["source"]), call["unpack"]
    start = ZipPlace.from_json(call["start"]) if call["start"] is not None else None
    if start is None and sniff(source) in _OFFICE:
        raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("archive.document"))
    if start is not None and call.get("give_up"):
        with PartWriter(answer, Path(call["bookmark"])) as part:
            part.write(_end(start, {"code": Code.PARSE_ERROR.value, **call["blame"]}))
        return {"status": 200, "next": None}
    until = time.monotonic() + wish["seconds"]
    with source.open("rb", buffering=0) as file, PartWriter(answer, Path(call["bookmark"])) as part:
        unpacker = Unpacker(
            file,
            ArchiveLimits(**wish["limits"]),
            sniff=lambda content: sniff_opened(content).value,
            scratch=lambda: cast("BinaryIO", tempfile.TemporaryFile(dir=answer.parent)),  # noqa: SIM115
            start=start,
            blame=_blamed(call["blame"]),
        )
        problem = None
        try:
            for member in unpacker.members(lambda place: part.begins(place.to_json())):
                _write(member, part)
                if part.size >= wish["bytes"] or call["alone"] or time.monotonic() > until:
                    return {"status": 200, "next": unpacker.place.to_json()}
        except LimitReached as fault:
            if start is None and not part.size:
                raise
            problem = _problem(fault)
        part.write(_end(unpacker.place, problem))
        return {"status": 200, "next": None}


def _end(place: ZipPlace, problem: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"end": True, "files": place.no, "unpacked": place.unpacked, "problem": problem}


def _write(member: ZipMember, part: PartWriter) -> None:
    if member.content is None or member.fault is not None:
        problem = _problem(member.fault) if member.fault is not None else None
        part.write({"no": member.no, "path": member.path, "problem": problem})
        return
    content = member.content
    header = {"no": member.no, "path": member.path, "type": member.type, "sha256": content.sha256}
    part.copy(header, content.file, content.size)


def _problem(fault: DocumentRejected) -> dict[str, Any]:
    code = Code.TOO_LARGE if fault.code is FaultCode.TOO_LARGE else Code.PARSE_ERROR
    return {
        "code": code.value,
        "fault": fault.code.value,
        "key": fault.says.key,
        "params": fault.says.params,
        "detail": fault.message,
    }


def _blamed(blame: Mapping[str, Any] | None) -> DocumentRejected | None:
    """What the service says about the member that has killed a parser."""
    if blame is None:
        return None
    says = DocumentMessage.stored(blame["detail"], blame["key"], dict(blame["params"]))
    return DocumentRejected(FaultCode(blame["fault"]), says)
