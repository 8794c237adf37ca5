"""Objects as files in a folder: the default, and all that one machine needs.

A file appears under its name whole and flushed, or not at all (`files.atomic`); no symbolic link is followed inside the
folder (`files.paths`). Every touch of the disk happens in a thread, never on the event loop.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import stat
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from waybill.errors import IoFailure, NotFound, StorageFull
from waybill.files.atomic import AtomicFile
from waybill.files.paths import NEW_FOLDER, folder_under, open_under
from waybill.storage.folder_listing import Walk
from waybill.storage.incoming import pieces
from waybill.storage.interface import CHUNK, Listed, Stored
from waybill.storage.keys import checked

P = ParamSpec("P")
T = TypeVar("T")

_MISSING = (FileNotFoundError, NotADirectoryError)
_DELETE_AT_LEAST, _DELETE_AT_ONCE = 25, 4
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class LocalStorage:
    def __init__(self, root: Path) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"LocalStorage({str(self._root)!r})"

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        file = await _in_thread(self._create, checked(key))
        writing: asyncio.Future[None] | None = None
        try:
            async with aclosing(pieces(data, CHUNK, limit)) as incoming:
                async for piece in incoming:
                    # One piece is hashed and written while the next one comes in.
                    if writing is not None:
                        await writing
                    writing = asyncio.ensure_future(_in_thread(file.write, piece))
            if writing is not None:
                await writing
            written = await _in_thread(file.commit)
        except BaseException:
            # Not a task, which could be cancelled with its caller: whatever becomes of us, a thread removes the
            # temporary file, as soon as it is not being written to any more.
            aborting = asyncio.get_running_loop().run_in_executor(None, file.abort)
            if writing is not None:
                writing.add_done_callback(_heard)
            await asyncio.shield(aborting)
            raise
        return Stored(key, written.bytes, written.sha256)

    async def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        file = await _in_thread(self._open, checked(key), start)
        left = None if end is None else end - start
        try:
            while left is None or left > 0:
                chunk = await _in_thread(file.read, CHUNK if left is None else min(CHUNK, left))
                if not chunk:
                    break
                if left is not None:
                    left -= len(chunk)
                yield chunk
        finally:
            await asyncio.shield(asyncio.to_thread(file.close))

    async def get(self, key: str) -> bytes:
        return await _in_thread(self._read, checked(key))

    async def size(self, key: str) -> int:
        found = await _in_thread(self._stat, checked(key))
        if found is None:
            raise _nothing(key)
        return found.st_size

    async def exists(self, key: str) -> bool:
        return await _in_thread(self._stat, checked(key)) is not None

    async def delete(self, key: str) -> None:
        await self.delete_many([key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        # Side by side: a disk that is busy answers several as fast as one.
        keys = [checked(key) for key in keys]
        each = max(_DELETE_AT_LEAST, -(-len(keys) // _DELETE_AT_ONCE))
        slices = [keys[start : start + each] for start in range(0, len(keys), each)]
        await asyncio.gather(*(_in_thread(self._delete, one) for one in slices))

    async def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        walk = Walk(self._root, checked(prefix.removesuffix("/")) if prefix else "")
        try:
            while found := await _in_thread(walk.some):
                for one in found:
                    yield one
        finally:
            await asyncio.shield(asyncio.to_thread(walk.close))

    async def free_space(self) -> int | None:
        return await _in_thread(self._free)

    async def check(self) -> None:
        await _in_thread(self._must_be_writable)

    def _create(self, key: str) -> AtomicFile:
        while True:
            try:
                with folder_under(self._root, key, create=True) as (folder, name):
                    return AtomicFile(folder, name)
            except FileNotFoundError:
                # Somebody deleted the last object of a folder, and the folder with it, between our two steps.
                continue

    def _open(self, key: str, start: int = 0) -> io.FileIO:
        try:
            file = io.FileIO(open_under(self._root, key))  # unbuffered: our pieces are larger than any buffer
        except _MISSING:
            raise _nothing(key) from None
        file.seek(start)
        return file

    def _read(self, key: str) -> bytes:
        with self._open(key) as file:
            return file.read()

    def _stat(self, key: str) -> os.stat_result | None:
        try:
            with folder_under(self._root, key) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except _MISSING:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def _delete(self, keys: Sequence[str]) -> None:
        folders: dict[str, list[str]] = {}
        for key in keys:
            folder, _, name = key.rpartition("/")
            folders.setdefault(folder, []).append(name)
        for folder, names in folders.items():
            # `folder_under` wants a name in the folder; which one does not matter.
            with suppress(*_MISSING), folder_under(self._root, f"{folder}/any".lstrip("/")) as (opened, _):
                for name in names:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=opened)
        self._remove_empty(folders)

    def _remove_empty(self, folders: Iterable[str]) -> None:
        """Folders that are empty now, or a result's folder would stay for ever. Not under somebody's feet: one who is
        storing there has a file in it, or makes the folder again."""
        in_use = {""}
        for folder in folders:
            above = folder
            while above not in in_use:
                try:
                    with folder_under(self._root, above) as (opened, name):
                        os.rmdir(name, dir_fd=opened)
                except OSError:
                    in_use.add(above)
                above = above.rpartition("/")[0]

    def _free(self) -> int:
        place = self._root.absolute()
        while not place.exists():
            place = place.parent
        found = os.statvfs(place)
        if found.f_files and not found.f_favail:
            return 0  # room for bytes, but for no file more
        return found.f_bavail * found.f_frsize

    def _must_be_writable(self) -> None:
        self._root.mkdir(NEW_FOLDER, parents=True, exist_ok=True)
        if not os.access(self._root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


async def _in_thread(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(function, *arguments, **options)
    except OSError as error:
        raise _failure(error) from error


def _heard(writing: asyncio.Future[None]) -> None:
    """Its failure is, or came after, what made us give up."""
    if not writing.cancelled():
        writing.exception()


def _nothing(key: str) -> NotFound:
    return NotFound(f"Nothing is stored under {key!r}.")


def _failure(error: OSError) -> IoFailure:
    detail = {"errno": errno.errorcode.get(error.errno or 0, str(error.errno))}
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("The disk is full. We try again by ourselves.", detail=detail)
    if error.errno in _NOT_ALLOWED:
        return IoFailure("The folder for documents and results may not be used by this service.", detail=detail)
    return IoFailure(detail=detail)
