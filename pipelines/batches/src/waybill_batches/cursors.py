"""Opaque cursors: where the next page of a list begins."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from waybill.errors import Refused
from waybill.messages import msg

_POSITION = re.compile(r"([0-9]{1,2})-(-1|[0-9]{1,9})", re.ASCII)


def parse_batch_cursor(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Refused(msg("batches.cursor")) from None


@dataclass(frozen=True, slots=True)
class FilePosition:
    """The last file of a page: which of the wanted statuses it had, and its place in the ZIP."""

    place: int
    number: int

    def __str__(self) -> str:
        return f"{self.place}-{self.number}"

    @classmethod
    def parse(cls, text: str) -> FilePosition:
        found = _POSITION.fullmatch(text)
        if found is None:
            raise Refused(msg("batches.cursor"))
        return cls(int(found[1]), int(found[2]))
