"""Decides whether a document is of the kind that a mapping is for, and how much speaks for it.

A mapping that was named is asked once all pages were seen. `mapping_choice.py` asks all mappings of a catalogue about
the pages that were read so far.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.model import Mapping, Recognise
from waybill_documents.messages import DocumentMessage
from waybill_documents.phrase_index import PhraseIndex
from waybill_documents.text_lines import Lines, fold

BY_ATTACHMENT = 1_000
"""The score of a mapping for embedded invoices when the PDF has one. Printed words never say as much."""
_MOST_BY_PHRASES = BY_ATTACHMENT - 1


class Phrases:
    """A mapping's phrases, folded: what is missing among those that were found, and what they are worth."""

    def __init__(self, rule: Recognise) -> None:
        self.all = {phrase: fold(phrase) for phrase in rule.all}
        self.any = {phrase: fold(phrase) for phrase in rule.any}
        self.none = {phrase: fold(phrase) for phrase in rule.none}
        self.folded = frozenset((*self.all.values(), *self.any.values(), *self.none.values()))
        self.most = self.score(self.folded)
        """The score with all phrases."""

    def missing(self, found: AbstractSet[str]) -> list[str]:
        """The required phrases that were not found; alternatives are one."""
        missing = [phrase for phrase, folded in self.all.items() if folded not in found]
        if self.any and found.isdisjoint(self.any.values()):
            missing.append(" / ".join(self.any))
        return missing

    def unwanted(self, found: AbstractSet[str]) -> list[str]:
        """The phrases that were found and should not be there."""
        return [phrase for phrase, folded in self.none.items() if folded in found]

    def score(self, found: AbstractSet[str]) -> int:
        """The letters of the required phrases that were found, and of the longest alternative.

        More words, and longer ones, say more about a document. Of alternatives only one counts, because a mapping that
        lists many of them does not know its documents any better.
        """
        letters = sum(len(phrase) for phrase in {*self.all.values()} & found)
        letters += max((len(phrase) for phrase in {*self.any.values()} & found), default=0)
        return min(letters, _MOST_BY_PHRASES)


class Recognition:
    """Collects which of the phrases of one mapping the pages have."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._phrases = Phrases(mapping.recognise)
        self._index = PhraseIndex(self._phrases.folded)
        self._found: set[str] = set()

    def look(self, lines: Lines) -> None:
        """Look for the phrases on one page."""
        if len(self._found) < len(self._phrases.folded):
            self._found |= self._index.found(lines)

    def conclude(self) -> None:
        """Raise `DocumentRejected` if required phrases are missing or unwanted ones are there."""
        title = self._mapping.title
        if missing := self._phrases.missing(self._found):
            raise DocumentRejected(
                FaultCode.NOT_RECOGNISED, DocumentMessage("document.lacks_phrases", mapping=title, phrases=missing)
            )
        if unwanted := self._phrases.unwanted(self._found):
            raise DocumentRejected(
                FaultCode.NOT_RECOGNISED, DocumentMessage("document.has_phrases", mapping=title, phrases=unwanted)
            )
