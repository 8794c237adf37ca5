"""A document read with a mapping: what `waybill mapping try` reports, draws and prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from waybill_convert.commands.mapping.document_argument import kind_of
from waybill_documents.document_reader import read_document
from waybill_documents.faults import DocumentRejected, FaultCode, Finding
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.reading import Reading
from waybill_documents.stages import Stages


@dataclass(slots=True)
class Trial:
    """The result, however far the conversion got."""

    source: Path
    loaded: LoadedMapping
    pages: list[Page] = field(default_factory=list)
    reading: Reading | None = None
    """None if the document could not be read, or this mapping is not for it."""
    fault: DocumentRejected | None = None
    """Why there is no XML; None if the document was converted."""
    xml: bytes | None = None
    """None if the document is at fault, or the mapping writes no XML."""
    stages: dict[str, float] = field(default_factory=dict)
    milliseconds: float = 0.0

    @property
    def recognised(self) -> bool:
        """Whether the mapping is for this document."""
        return self.reading is not None

    @property
    def on_sheets(self) -> bool:
        """Whether its places are cells and not boxes on pages."""
        return any(page.sheet is not None for page in self.pages)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong."""
        return self.fault.findings if self.fault is not None else ()

    def to_json(self) -> dict[str, Any]:
        """The gateway's answer, and whether the conversion succeeded."""
        mapping = self.loaded.mapping
        found = (
            self.reading.to_json()
            if self.reading is not None
            else {"mapping": {"name": mapping.name, "title": mapping.title, "sha256": self.loaded.sha256}}
        )
        return {
            "converted": self.fault is None,
            "recognised": self.recognised,
            "fault": {"code": self.fault.code.value, "message": self.fault.message} if self.fault else None,
            **found,
            "findings": [finding.to_json() for finding in self.findings],
            "xml": self.xml.decode() if self.xml is not None else None,
            "stages": {stage: round(spent, 2) for stage, spent in self.stages.items()},
            "milliseconds": round(self.milliseconds, 2),
        }


def attempt(source: Path, loaded: LoadedMapping) -> Trial:
    """Read, check and render a document. The trial has the document's faults; a mapping's fault is raised."""
    start = perf_counter()
    stages = Stages(perf_counter)
    trial = Trial(source, loaded)
    try:
        trial.reading = read_document(source, kind_of(source), loaded, PdfLimits(), stages, keep=trial.pages)
        trial.reading.accept()
        if loaded.mapping.xml is not None or loaded.mapping.embedded is not None:
            with stages.timed("xml"):
                trial.xml = trial.reading.xml(pretty=True)
    except DocumentRejected as fault:
        trial.fault = fault
    except OSError as error:
        detail = DocumentMessage("document.file_unreadable", detail=error.strerror)
        trial.fault = DocumentRejected(FaultCode.UNREADABLE, detail)
    trial.stages, trial.milliseconds = stages.milliseconds, (perf_counter() - start) * 1000
    return trial
