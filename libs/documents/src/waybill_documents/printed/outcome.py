"""What a comparison of one value with the pages says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waybill_documents.geometry import Place


@dataclass(frozen=True, slots=True)
class PrintedOutcome:
    """Printed the same, printed otherwise, or not found."""

    passed: bool | None
    place: Place | None = None
    says: str | None = None
    """What is printed instead."""
    worth_a_note: bool = False
    """Whether a person should hear that it was not found."""

    @classmethod
    def same(cls, place: Place) -> PrintedOutcome:
        """The page says it too."""
        return cls(True, place)

    @classmethod
    def unseen(cls, *, worth_a_note: bool = True) -> PrintedOutcome:
        """The page does not say it, or not clearly."""
        return cls(None, worth_a_note=worth_a_note)

    @classmethod
    def of_said(cls, said: Sequence[tuple[str, Place]]) -> PrintedOutcome:
        """A difference if all labels agree on another value. If they do not, we have not understood the page."""
        if len({"".join(text.split()) for text, _ in said}) != 1:
            return cls.unseen()
        text, place = said[0]
        return cls(False, place, text)
