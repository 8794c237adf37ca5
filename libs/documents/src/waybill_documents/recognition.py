"""Whether a document is of the sort that a mapping is for: the first question, answered when all pages were seen."""

from __future__ import annotations

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.lines import Lines, fold
from waybill_documents.mapping.model import Mapping


class Recognition:
    """Whether this is the sort of document that the mapping is for."""

    def __init__(self, mapping: Mapping) -> None:
        rule = mapping.recognise
        self._mapping = mapping
        self._wanted = {phrase: fold(phrase) for phrase in (*rule.all, *rule.any, *rule.none)}
        self._seen: set[str] = set()

    def look(self, lines: Lines) -> None:
        """Look for its phrases on one page."""
        for phrase, folded in self._wanted.items():
            if phrase not in self._seen and next(lines.find(folded), None) is not None:
                self._seen.add(phrase)

    def conclude(self) -> None:
        """Refuse the document, saying why, if it is not that sort."""
        rule = self._mapping.recognise
        missing = [phrase for phrase in rule.all if phrase not in self._seen]
        if rule.any and not self._seen & set(rule.any):
            missing.append(" / ".join(rule.any))
        unwanted = [phrase for phrase in rule.none if phrase in self._seen]
        if missing or unwanted:
            lacks = ", ".join(f"“{phrase}”" for phrase in missing)
            has = ", ".join(f"“{phrase}”" for phrase in unwanted)
            why = f"it lacks {lacks}" if missing else f"it has {has}"
            raise DocumentFault(
                FaultCode.NOT_RECOGNISED,
                f"This does not look like a document for the mapping “{self._mapping.title}”: {why}.",
            )
