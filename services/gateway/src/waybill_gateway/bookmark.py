"""How far a parser is with an answer that is made in parts: what the service knows if the parser dies on the way.

The parser notes before each item what it is about to do, and how much of its answer is complete. A small file does for
that: writing it costs a system call, while a message to the service would cost both ends more than a small document.
The parser imports this, too, so it imports nothing of the service.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOM = 512


class BookmarkWriter:
    """Writes a bookmark again and again."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def note(self, start: Any, size: int) -> None:
        """`start` is where to go on for the item that begins now; `size` is that of the answer until there."""
        # One write of always the same length: whoever reads it sees either the earlier one or this one.
        os.pwrite(self._file, json.dumps({"start": start, "size": size}).encode().ljust(_ROOM), 0)

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """What a parser noted last."""

    start: Any
    size: int

    @classmethod
    def read(cls, path: Path) -> Bookmark | None:
        """The bookmark of a parser that is dead. None if it noted nothing, or nothing that makes sense."""
        try:
            noted = json.loads(path.read_bytes())
            size = noted["size"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            return None
        return cls(noted.get("start"), size)
