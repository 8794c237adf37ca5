"""Golden cases: the data of a document and the XML that the mapping must make of it.

`golden/NAME.json` beside the mapping has the data in the form of an answer, `golden/NAME.xml` has the indented XML.
They test a mapping without anybody's private documents. A change that breaks one changes what the mapping means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from importlib.resources.abc import Traversable
from pathlib import Path

from waybill_documents.document_reader import read_data
from waybill_documents.faults import DocumentRejected
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.reading import Reading
from waybill_documents.stages import Stages


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One case of a mapping."""

    name: str
    data: Path | Traversable
    xml: Path | Traversable

    def difference(self, loaded: LoadedMapping) -> str:
        """How the result differs: findings, or lines of XML. Empty when the case passes."""
        if not self.xml.is_file():
            return f"there is no {self.xml.name} beside it"
        try:
            made = self._xml(loaded)
        except DocumentRejected as fault:
            return "\n".join(finding.message for finding in fault.findings)
        wanted = self.xml.read_text(encoding="utf-8").splitlines()
        return "\n".join(unified_diff(wanted, made.splitlines(), self.xml.name, "made by the mapping", lineterm=""))

    def _xml(self, loaded: LoadedMapping) -> str:
        reading: Reading = read_data(self.data, loaded, Stages(lambda: 0.0))
        reading.accept()
        return reading.xml(pretty=True).decode()


def golden_cases(folder: Path | Traversable) -> Iterator[GoldenCase]:
    """The cases beside a mapping, by name. A JSON file without its XML is a case that fails."""
    golden = folder / "golden"
    if not golden.is_dir():
        return
    for each in sorted(golden.iterdir(), key=lambda entry: entry.name):
        if each.name.endswith(".json"):
            name = each.name.removesuffix(".json")
            yield GoldenCase(name, each, golden / f"{name}.xml")
