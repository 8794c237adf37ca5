"""Golden cases: the data of a document and the XML it must become, beside the mapping that says how.

`golden/NAME.json` has the data as an answer has it, `golden/NAME.xml` the XML, pretty. They hold a mapping to its
promise without any document that somebody owns; a change that breaks one is a change of what the mapping means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from importlib.resources.abc import Traversable
from pathlib import Path

from waybill_documents.conversion import Reading, read_data
from waybill_documents.faults import DocumentFault
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.stages import Stages


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One case of a mapping."""

    name: str
    data: Path | Traversable
    xml: Path | Traversable

    def difference(self, loaded: LoadedMapping) -> str:
        """What is not as it must be: findings, or lines of XML. Empty when the case holds."""
        if not self.xml.is_file():
            return f"there is no {self.xml.name} beside it"
        try:
            made = self._xml(loaded)
        except DocumentFault as fault:
            return "\n".join(finding.message for finding in fault.findings)
        wanted = self.xml.read_text(encoding="utf-8").splitlines()
        return "\n".join(unified_diff(wanted, made.splitlines(), self.xml.name, "made by the mapping", lineterm=""))

    def _xml(self, loaded: LoadedMapping) -> str:
        reading: Reading = read_data(self.data, loaded, Stages(lambda: 0.0))
        reading.accept()
        return reading.xml(pretty=True).decode()


def golden_cases(folder: Path | Traversable) -> Iterator[GoldenCase]:
    """The cases beside a mapping, by name; a JSON without its XML is one too, and will not hold."""
    golden = folder / "golden"
    if not golden.is_dir():
        return
    for each in sorted(golden.iterdir(), key=lambda entry: entry.name):
        if each.name.endswith(".json"):
            name = each.name.removesuffix(".json")
            yield GoldenCase(name, each, golden / f"{name}.xml")
