"""What every storage guarantees. One set of tests runs against all implementations."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

CHUNK = 1024 * 1024
"""Bytes that are handled at once: little enough for memory, and enough that a switch to a thread hardly matters."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored: enough to notice later if the object changed."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing."""

    key: str
    bytes: int
    modified: datetime
    """When it was stored, in UTC, by the storage's own clock."""


class Storage(Protocol):
    """Objects by key. A key looks like a relative path: `uploads/26/11/16/0197….pdf`; see `keys`.

    A failure of the storage raises `IoFailure` (`StorageFull` for a full disk), which is retryable. An exception from
    the data that `put` reads is raised unchanged. Every operation needs a few megabytes of memory, whatever the
    object's size (about fifteen to put it into an object store), and may be cancelled at any time.
    """

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        """Store an object completely or not at all. An existing object with this key is replaced.

        Raises TooLarge as soon as there are more than `limit` bytes; the rest is not read.
        """

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The object in pieces, or the part of it from `start` up to but not including `end`.

        Raises NotFound on the first step if there is no such object. If an object is replaced while it is read, the
        reader gets the rest of the old one or an IoFailure, never a mixture.
        """

    async def get(self, key: str) -> bytes:
        """The whole object; use it for small ones. Raises NotFound if there is none."""

    async def size(self, key: str) -> int:
        """Its size in bytes. Raises NotFound if there is none."""

    async def exists(self, key: str) -> bool: ...

    async def delete(self, key: str) -> None:
        """Delete the object. It is no error if there is none."""

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Delete several objects in parallel. It is no error if some do not exist.

        If it fails, some may have been deleted.
        """

    def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        """The objects whose keys are below `prefix`, which consists of whole parts of a key. Their order is undefined.

        Objects that are stored or deleted meanwhile may or may not be included.
        """

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        """Remove what writers left behind that were killed, or only count it. No listing shows it.

        It is cheap, unless `older_than` is given: then all folders are gone through for what release 0.1.0 left so many
        seconds ago. An object store removes such things by a rule of the bucket.
        """

    async def free_space(self) -> int | None:
        """Free bytes; None if the storage has no limit."""

    async def check(self) -> None:
        """Raise IoFailure unless the storage works. It is cheap enough to be called every few seconds."""
