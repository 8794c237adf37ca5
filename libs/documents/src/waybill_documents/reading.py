"""A document that was read by a mapping. XML, records and corrections are made from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from waybill_documents import hybrid
from waybill_documents.check_explanations import MISSING
from waybill_documents.checks import CheckResult, check
from waybill_documents.computed_values import compute
from waybill_documents.confidence import judge
from waybill_documents.essential_values import disproved, essential
from waybill_documents.extraction import Extraction
from waybill_documents.faults import DocumentRejected, Finding
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.provenance import carries_of, data_of, looked_of, provenance_of
from waybill_documents.search_areas import Looked
from waybill_documents.stages import Stages
from waybill_documents.values import Extracted
from waybill_documents.xml_output import render


@dataclass(slots=True)
class Reading:
    """A document that was read by a mapping: its values, its checks and its findings."""

    loaded: LoadedMapping
    source: dict[str, Any]
    extracted: Extracted
    checks: list[CheckResult]
    findings: list[Finding]
    """What makes the document fail, such as a missing required value or a required check that does not hold."""
    embedded: hybrid.EmbeddedInvoice | None = None
    looked: Looked = field(default_factory=dict)
    """For each value that was not found, where it was looked for."""
    dropped: tuple[Finding, ...] = ()
    """What the XML lacks of an e-invoice; known when it has been written."""
    recognition: dict[str, Any] | None = None
    """Why this mapping was chosen; None if it was named."""

    def to_json(self) -> dict[str, Any]:
        """The record: everything about the document, for an answer or for a person who investigates a failure."""
        mapping = self.loaded.mapping
        chosen = {"recognition": self.recognition} if self.recognition is not None else {}
        return {
            "mapping": {"name": mapping.name, "title": mapping.title, "sha256": self.loaded.sha256},
            **chosen,
            "source": self.source,
            "data": data_of(self.extracted),
            "provenance": provenance_of(self.extracted),
            "checks": [result.to_json() for result in self.checks],
            "findings": [finding.to_json() for finding in self.findings],
            "carries": carries_of(self.extracted),
            "looked": looked_of(self.looked),
            "review": self._review(),
        }

    def _review(self) -> dict[str, Any]:
        """What decides whether a person has to look first, apart from the threshold that whoever runs us may set."""
        mapping = self.loaded.mapping
        values = essential(mapping)
        return {
            "below": mapping.review_below,
            "essential": values,
            "disproved": disproved(values, self.extracted, self.checks),
        }

    def accept(self) -> None:
        """Raise `DocumentRejected` with the whole record if there are findings."""
        if not self.findings:
            return
        first, *others = self.findings
        says = DocumentMessage("document.first_finding", first=first.says, count=len(others)) if others else first.says
        raise DocumentRejected(first.code, says, tuple(self.findings), partial=self.to_json())

    def xml(self, *, pretty: bool) -> bytes:
        """The XML that the mapping describes."""
        rule = self.loaded.mapping.embedded
        if self.embedded is not None and rule is not None:
            converted = hybrid.convert(
                self.embedded, hybrid.Syntax(rule.output), loss=hybrid.Loss(rule.loss), pretty=pretty
            )
            self.dropped = converted.dropped
            return converted.xml
        return render(self.loaded.mapping, self.extracted.data(), pretty=pretty, schema=self.loaded.schema)


def judged(loaded: LoadedMapping, extraction: Extraction, source: dict[str, Any], stages: Stages) -> Reading:
    """Adds computed values, checks and confidence to what was read."""
    extracted = extraction.extracted
    with stages.timed("computed"):
        findings = [*extraction.findings, *compute(loaded.mapping, extracted)]
    with stages.timed("checks"):
        results = check(loaded.mapping, extracted, extracted.carries)
    with stages.timed("confidence"):
        judge(loaded.mapping, extracted, results)
    known = {finding.path for finding in findings}
    news = [failure for failure in failures(results) if not _is_told(failure, known)]
    return Reading(loaded, source, extracted, results, [*findings, *news], looked=extraction.looked)


def _is_told(failure: Finding, known: Collection[str | None]) -> bool:
    """Whether a check failed only because of a missing value that has a finding already."""
    return failure.key == MISSING and failure.path in known


def failures(results: Iterable[CheckResult]) -> Iterator[Finding]:
    for result in results:
        if result.required and result.passed is False:
            yield from result.findings
