"""Finds many phrases in a page at once.

A page has a few hundred words and a catalogue of mappings a few hundred phrases. Looking for each phrase by itself
would take time for every mapping that somebody adds. The index goes over the words once, however many phrases there
are.
"""

from __future__ import annotations

from collections.abc import Iterable

from waybill_documents.text_lines import Lines


class PhraseIndex:
    """Folded phrases, and all the beginnings that they have."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.phrases = frozenset(phrases)
        self._beginnings = frozenset(phrase[:end] for phrase in self.phrases for end in range(1, len(phrase)))

    def found(self, lines: Lines) -> set[str]:
        """The phrases that the page has. A phrase consists of whole words of one line, as in `Lines.find`."""
        phrases, beginnings = self.phrases, self._beginnings
        found: set[str] = set()
        for line in lines:
            folded = line.folded
            for start, first in enumerate(folded):
                if first in phrases:
                    found.add(first)
                if first not in beginnings:  # by far the most words
                    continue
                read = first
                for word in folded[start + 1 :]:
                    read += word
                    if read in phrases:
                        found.add(read)
                    if read not in beginnings:
                        break
        return found
