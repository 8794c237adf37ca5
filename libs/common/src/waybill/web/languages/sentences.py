"""Sentences that other parts of Waybill say, found again in the English catalogue by what they look like.

Errors carry English sentences: the API's documents, the command and the logs want them so. The pages know them by the
tables `errors`, `titles` (of the mappings we ship) and `sentences`, and say the same key in the reader's language.
"""

from __future__ import annotations

import re

from waybill.web.languages.catalogue import HOLE, Catalogue

TABLES = ("errors.", "titles.", "sentences.")
_LONGEST = 1000
"""Nothing that we say is longer; what comes from elsewhere may be, and is not worth the search."""


class Sentences:
    def __init__(self, english: Catalogue) -> None:
        ours = {key: message for key, message in english.items() if key.startswith(TABLES)}
        self._plain = {message.other: key for key, message in ours.items() if not message.holes}
        self._patterns = [(key, _pattern(message.other)) for key, message in ours.items() if message.holes]

    def find(self, sentence: str) -> tuple[str, dict[str, str]] | None:
        """The message's key, and what stands in its holes."""
        if sentence in self._plain:
            return self._plain[sentence], {}
        if len(sentence) > _LONGEST:
            return None
        for key, pattern in self._patterns:
            if found := pattern.fullmatch(sentence):
                return key, found.groupdict()
        return None


def _pattern(text: str) -> re.Pattern[str]:
    literals = [re.escape(part) for part in HOLE.split(text)[::2]]
    holes = [f"(?P<{name}>.+?)" for name in HOLE.findall(text)]
    return re.compile(literals[0] + "".join(hole + after for hole, after in zip(holes, literals[1:], strict=True)))
