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
from typing import Any, NamedTuple

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


class Answer(NamedTuple):
    status: int
    body: bytes


def extract(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    """Write a frame for each document. The note says which document the next call begins with; None after the last."""
    source, wish, first = Path(call["source"]), call["extract"], call["start"] or 0
    if call["start"] is None and (reason := _fault_of(source, wish)) is not None:
        return {"status": 400, "reason": reason}
    until = time.monotonic() + wish["seconds"]
    kinds: Counter[str] = Counter()
    with source.open("rb") as file, PartWriter(answer, Path(call["checkpoint"])) as part:
        for index, (header, content) in enumerate(PackReader(file, most_bytes=wish["bytes"])):
            if index < first or header.get("end"):
                continue
            part.begins(index)
            began = time.perf_counter()
            given = _answer(header["type"], content, call, blamed=call["blame"] if index == first else None)
            spent = round((time.perf_counter() - began) * 1000, 3)
            try:
                part.write({"no": header["no"], "status": given.status, "ms": spent}, given.body)
            except OSError as error:
                if error.errno != errno.EFBIG:
                    raise
                if part.size:  # there is room for it in an answer of its own
                    return {"status": 200, "next": index, "kinds": kinds}
                part.write({"no": header["no"], "status": 422, "ms": spent}, _too_large(call).body)
            kinds[header["type"]] += 1
            if call["alone"] or time.monotonic() > until:
                return {"status": 200, "next": index + 1, "kinds": kinds}
        part.write({"end": True})
    return {"status": 200, "next": None, "kinds": kinds}


def _fault_of(source: Path, wish: Mapping[str, Any]) -> str | None:
    """Why this is not what we take, for the programmer who sent it."""
    documents = 0
    try:
        with source.open("rb") as file:
            for header, _content in PackReader(file, most_bytes=wish["bytes"]):
                if header.get("end"):
                    continue
                documents += 1
                if documents > wish["documents"]:
                    return f"it has more than {wish['documents']} documents"
                if not isinstance(header.get("no"), int):
                    return "a document has no number ('no')"
                if str(header.get("type")) not in _TYPES:
                    return "a document has no type ('type')"
    except BadPack as fault:
        return str(fault)
    return None


def _answer(type_: str, content: bytes, call: Mapping[str, Any], *, blamed: Mapping[str, Any] | None) -> Answer:
    """The JSON of one document, or the problem document that `POST /process` would answer with."""
    if blamed is not None:
        says = DocumentMessage.stored(blamed["detail"], blamed["key"], dict(blamed["params"]))
        return _refused(call, DocumentRejected(FaultCode(blamed["fault"]), says))
    found = FileType(type_)
    try:
        if found in _TEXTS:
            return Answer(200, convert_text(content, time.perf_counter).body)
        if found in _FILES:
            return Answer(200, _from_file(_FILES[found], content, Path(call["scratch"])))
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


def _unread(found: FileType, call: Mapping[str, Any]) -> Answer:
    if found is FileType.ENCRYPTED_OFFICE:
        return _refused(call, DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("office.encrypted")))
    said = SAVE_ANEW.get(found)
    own = msg("gateway.not_a_document")
    words = {"detail": said.english, "key": said.key} if said is not None else {"detail": str(own), "key": own.key}
    members = {**call["problem"], "status": 415, "title": "Unsupported Media Type", "code": Code.NOT_PDF.value}
    return Answer(415, _dumped({**members, **words, "params": {}}))


def _too_large(call: Mapping[str, Any]) -> Answer:
    says = DocumentMessage("document.answer_too_large")
    return _refused(call, DocumentRejected(FaultCode.TOO_MUCH_TEXT, says))


def _refused(call: Mapping[str, Any], fault: DocumentRejected) -> Answer:
    return Answer(422, _dumped(problem_of(call["problem"], fault)))


def _dumped(problem: Mapping[str, Any]) -> bytes:
    # No `ensure_ascii=False`: text from a broken document may contain half a character.
    return json.dumps(problem).encode()
