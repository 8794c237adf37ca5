"""What a parser does with a document: convert it, draw a page, take out an attachment; or report a fault as a problem.

`unpack_task` and `extract_task` are for many documents at once.

This runs in the sandbox, so it imports nothing of the service.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waybill_documents.candidates import Candidates
from waybill_documents.catalogue import AUTO
from waybill_documents.conversion import convert
from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.embedded_files import embedded_file
from waybill_documents.pdf.page_images import page_image
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.stages import Stages
from waybill_gateway.extract_task import extract
from waybill_gateway.mappings import Mappings
from waybill_gateway.problem_documents import problem_of
from waybill_gateway.sent_catalogues import SentCatalogues
from waybill_gateway.sent_mappings import CompiledMappings, read_sent
from waybill_gateway.unpack_task import unpack

_mappings: Mappings
_compiled = CompiledMappings()
_catalogues: SentCatalogues


def prepare(options: Mapping[str, Any]) -> None:
    """Load every mapping before the first document arrives."""
    global _mappings, _catalogues
    folder = options.get("mappings_dir")
    _mappings = Mappings(Path(folder) if folder else None)
    _catalogues = SentCatalogues(_mappings, _compiled)


def parse(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    """Convert one document or draw a page of it, and write the result or a problem document to `answer`.

    The returned note says which of the two it is, and when each stage ran, in seconds since the beginning.
    """
    began = time.perf_counter()
    note = _parsed(call, answer)
    extents: Mapping[str, tuple[float, float]] = note.get("extents", {})
    return {**note, "extents": {name: [begin - began, end - began] for name, (begin, end) in extents.items()}}


def _parsed(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    try:
        if "unpack" in call:
            return unpack(call, answer)
        if "extract" in call:
            return extract(call, answer)
        if "attachment" in call:
            return _extracted(call, answer)
        return _drawn(call, answer) if "page" in call else _converted(call, answer)
    except DocumentRejected as fault:
        return _refused(call, answer, fault)
    except MappingFault as fault:
        return {"status": 400, "detail": str(fault), "key": fault.says.key, "params": fault.says.params}
    except RecursionError:
        return _refused(call, answer, DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("document.too_deep")))
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        answer.unlink(missing_ok=True)
        return _refused(
            call, answer, DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("document.answer_too_large"))
        )


def _converted(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    mapping = _mapping(call)
    if mapping is not None and call["loss"] is not None:
        mapping = mapping.with_loss(call["loss"])
    result = convert(
        Path(call["source"]),
        call["kind"],
        mapping=mapping,
        wants=call["wants"],
        pretty=call["pretty"],
        clock=time.perf_counter,
    )
    answer.write_bytes(result.body)
    return {"status": 200, "mapping": result.mapping, "stages": result.stages, "extents": result.extents}


def _mapping(call: Mapping[str, Any]) -> LoadedMapping | Candidates | None:
    """The mapping that the call names: one that was sent with the document, or one of the gateway's own.

    `auto` means all of them.
    """
    name = call["mapping"]
    if name is None:
        return None
    if name == AUTO:
        return _catalogues.get(Path(call["mappings"])) if call.get("mappings") else _mappings.candidates
    if (
        call.get("mappings")
        and (sent := read_sent(Path(call["mappings"]).read_bytes(), _compiled).get(name)) is not None
    ):
        return sent
    if _mappings.find(name) is None:
        raise MappingFault(DocumentMessage("mapping.unknown", name=name))
    return _mappings[name]


def _drawn(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    stages, limits = Stages(time.perf_counter), PdfLimits()
    with opened(Path(call["source"]), limits) as document, stages.timed("image"):
        answer.write_bytes(page_image(document, call["page"], call["scale"], limits))
    return {"status": 200, "stages": stages.milliseconds, "extents": stages.extents}


def _extracted(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    stages, limits = Stages(time.perf_counter), PdfLimits()
    with opened(Path(call["source"]), limits) as document, stages.timed("attachment"):
        answer.write_bytes(embedded_file(document, call["attachment"], limits))
    return {"status": 200, "stages": stages.milliseconds, "extents": stages.extents}


def _refused(call: Mapping[str, Any], answer: Path, fault: DocumentRejected) -> dict[str, Any]:
    # No `ensure_ascii=False`: text from a broken document may contain half a character.
    answer.write_text(json.dumps(problem_of(call["problem"], fault)))
    return {"status": 422, "fault": fault.code.value, "stages": fault.stages, "extents": fault.extents}
