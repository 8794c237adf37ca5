"""What a parser does with a pack of documents: each one becomes JSON, or a problem document.

This runs in the sandbox, so it imports nothing of the service.
"""

from __future__ import annotations

import errno
import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from waybill.errors import Code
from waybill.files import FileType
from waybill.files.packs import BadPack, PackReader
from waybill.messages import msg
from waybill_documents.conversion import convert, convert_text
from waybill_documents.document_reader import Kind
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_gateway.file_signature import SAVE_ANEW
from waybill_gateway.part_writer import PartWriter
from waybill_gateway.problem_documents import problem_of
from waybill_gateway.sandbox import garbage_collection

_TEXTS = (FileType.TEXT, FileType.JSON, FileType.XML)
"""What is read as text without a mapping, straight from memory."""
_FILES: dict[FileType, Kind] = {FileType.PDF: "pdf", FileType.DOCX: "docx", FileType.XLSX: "xlsx"}
_TYPES = frozenset(each.value for each in FileType)


class DocumentAnswer(NamedTuple):
    status: int
    body: bytes


def extract(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    """Write a frame for each document. The note says which document the next call begins with; None after the last."""
    kinds: Counter[str] = Counter()
    try:
        with Path(call["source"]).open("rb") as pack, PartWriter(answer, Path(call["bookmark"])) as part:
            following = _extracted(call, pack, part, kinds)
    except BadPack as fault:
        return {"status": 400, "reason": str(fault)}
    return {"status": 200, "next": following, "kinds": kinds}


def _extracted(call: Mapping[str, Any], pack: BinaryIO, part: PartWriter, kinds: Counter[str]) -> int | None:
    """Work until the part is full. Returns the number of the next document; None if there is none."""
    wish, first = call["extract"], call["start"] or 0
    until = time.monotonic() + wish["seconds"]
    for index, (header, content) in enumerate(PackReader(pack, most_bytes=wish["bytes"])):
        if index < first or header.get("end"):
            continue
        _check(header, index, wish)
        part.begins(index)
        began = time.perf_counter()
        given = _answer(header["type"], content, call, blamed=call["blame"] if index == first else None)
        head = {"no": header["no"], "status": given.status, "ms": round((time.perf_counter() - began) * 1000, 3)}
        try:
            part.write(head, given.body)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            if part.size:  # there is room for it in a part of its own
                return index
            part.write({**head, "status": 422}, _too_large(call).body)
        kinds[header["type"]] += 1
        if call["alone"] or time.monotonic() > until:
            return index + 1
    part.write({"end": True})
    return None


def _check(header: Mapping[str, Any], index: int, wish: Mapping[str, Any]) -> None:
    """Refuse what our services do not send, in words for whoever programs them."""
    if index >= wish["documents"]:
        raise BadPack(f"it has more than {wish['documents']} documents")
    if not isinstance(header.get("no"), int):
        raise BadPack("a document has no number ('no')")
    if str(header.get("type")) not in _TYPES:
        raise BadPack("a document has no type ('type')")


def _answer(type_: str, content: bytes, call: Mapping[str, Any], *, blamed: Mapping[str, Any] | None) -> DocumentAnswer:
    """The JSON of one document, or the problem document that `POST /process` would answer with."""
    if blamed is not None:
        says = DocumentMessage.stored(blamed["detail"], blamed["key"], dict(blamed["params"]))
        return _refused(call, DocumentRejected(FaultCode(blamed["fault"]), says))
    found = FileType(type_)
    try:
        if found in _TEXTS:
            return DocumentAnswer(200, convert_text(content, time.perf_counter).body)
        if found in _FILES:
            return DocumentAnswer(200, _from_file(_FILES[found], content, Path(call["scratch"])))
    except DocumentRejected as fault:
        return _refused(call, fault)
    except RecursionError:
        return _refused(call, DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("document.too_deep")))
    return _unread(found, call)


def _from_file(kind: Kind, content: bytes, scratch: Path) -> bytes:
    try:
        scratch.write_bytes(content)
        return convert(scratch, kind, mapping=None, wants="json", clock=time.perf_counter).body
    finally:
        scratch.unlink(missing_ok=True)
        garbage_collection.collect()  # such a document leaves more than a text does


def _unread(found: FileType, call: Mapping[str, Any]) -> DocumentAnswer:
    if found is FileType.ENCRYPTED_OFFICE:
        return _refused(call, DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("office.encrypted")))
    said = SAVE_ANEW.get(found)
    own = msg("gateway.not_a_document")
    words = {"detail": said.english, "key": said.key} if said is not None else {"detail": str(own), "key": own.key}
    members = {**call["problem"], "status": 415, "title": "Unsupported Media Type", "code": Code.NOT_PDF.value}
    return DocumentAnswer(415, _dumped({**members, **words, "params": {}}))


def _too_large(call: Mapping[str, Any]) -> DocumentAnswer:
    says = DocumentMessage("document.answer_too_large")
    return _refused(call, DocumentRejected(FaultCode.TOO_MUCH_TEXT, says))


def _refused(call: Mapping[str, Any], fault: DocumentRejected) -> DocumentAnswer:
    return DocumentAnswer(422, _dumped(problem_of(call["problem"], fault)))


def _dumped(problem: Mapping[str, Any]) -> bytes:
    # No `ensure_ascii=False`: text from a broken document may contain half a character.
    return json.dumps(problem).encode()
