"""Decides whether a document is of the kind that a mapping is for, once all pages were seen."""

from __future__ import annotations

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.model import Mapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.text_lines import Lines, fold


class Recognition:
    """Collects which of the mapping's phrases the pages have."""

    def __init__(self, mapping: Mapping) -> None:
        rule = mapping.recognise
        self._mapping = mapping
        self._wanted = {phrase: fold(phrase) for phrase in (*rule.all, *rule.any, *rule.none)}
        self._seen: set[str] = set()

    def look(self, lines: Lines) -> None:
        """Look for the phrases on one page."""
        for phrase, folded in self._wanted.items():
            if phrase not in self._seen and next(lines.find(folded), None) is not None:
                self._seen.add(phrase)

    def conclude(self) -> None:
        """Raise `DocumentRejected` if required phrases are missing or unwanted ones are there."""
        rule = self._mapping.recognise
        missing = [phrase for phrase in rule.all if phrase not in self._seen]
        if rule.any and not self._seen & set(rule.any):
            missing.append(" / ".join(rule.any))
        unwanted = [phrase for phrase in rule.none if phrase in self._seen]
        title = self._mapping.title
        if missing:
            raise DocumentRejected(
                FaultCode.NOT_RECOGNISED, DocumentMessage("document.lacks_phrases", mapping=title, phrases=missing)
            )
        if unwanted:
            raise DocumentRejected(
                FaultCode.NOT_RECOGNISED, DocumentMessage("document.has_phrases", mapping=title, phrases=unwanted)
            )
