"""What every storage promises, whatever stands behind it; one set of tests holds all of them to it."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

CHUNK = 1024 * 1024
"""Bytes that are handled at a time: few enough to hold, enough that a hop to a thread costs nothing beside them."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored, as it was written: enough to notice later that it is not the same any more."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An object that a listing came across."""

    key: str
    bytes: int
    modified: datetime
    """When it was stored, in UTC and by the storage's own clock."""


class Storage(Protocol):
    """Objects by key. A key looks like a relative path: `uploads/26/11/16/0197….pdf`; `keys` says what it may hold.

    Whatever the storage itself does wrong is an `IoFailure` (a full disk: `StorageFull`), and worth trying again;
    what goes wrong in the data that `put` is given is raised as it is. However large an object, handling it costs a few
    megabytes of memory (about fifteen to put it into an object store). Anything may be cancelled at any moment.
    """

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        """Store an object, whole or not at all; one already there under the key is replaced.

        Past `limit` bytes it is TooLarge, as soon as that is known: what follows is not even read.
        """

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The object in pieces, or its bytes from `start` up to but not including `end`, as far as there are any.

        NotFound on the first step if there is no such object. One that is replaced while it is read is never mixed
        with its successor: the reader gets the old one to its end, or an IoFailure.
        """

    async def get(self, key: str) -> bytes:
        """The whole object, for small ones. NotFound if there is none."""

    async def size(self, key: str) -> int:
        """How many bytes it has. NotFound if there is none."""

    async def exists(self, key: str) -> bool: ...

    async def delete(self, key: str) -> None:
        """Remove the object; fine if there is none."""

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove several objects, faster than one after the other; fine if some are not there.

        If it fails, some may be gone and others not.
        """

    def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        """The objects whose keys lie below `prefix`, which ends where a part of a key does; in no promised order.

        Objects stored or deleted meanwhile may or may not be among them.
        """

    async def free_space(self) -> int | None:
        """Bytes left to store into; None where nobody counts them."""

    async def check(self) -> None:
        """An IoFailure unless objects could be stored here now. Cheap enough to be asked every few seconds."""
