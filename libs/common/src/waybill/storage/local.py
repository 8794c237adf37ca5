"""A storage in a folder. It is the default, and enough for one machine.

Files are written atomically (`files.atomic`), and symbolic links inside the folder are not followed (`files.paths`).
Every disk access runs in a thread, never on the event loop.
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

from waybill.errors import NotFound, StorageFailed, StorageFull
from waybill.files.atomic import AtomicFile, Written
from waybill.files.paths import NEW_FOLDER, folder_under, open_under
from waybill.messages import msg
from waybill.storage.abandoned_files import WRITING, remove_abandoned
from waybill.storage.folder_listing import FolderListing
from waybill.storage.interface import CHUNK, Listed, Stored
from waybill.storage.keys import checked
from waybill.storage.pieces import pieces

P = ParamSpec("P")
T = TypeVar("T")

_MISSING = (FileNotFoundError, NotADirectoryError)
_DELETE_AT_LEAST, _DELETE_AT_ONCE = 25, 4
_TRIES = 100
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
                    # Write one piece while the next one arrives.
                    if writing is not None:
                        await writing
                    writing = asyncio.ensure_future(_in_thread(file.write, piece))
            if writing is not None:
                await writing
            written = await _in_thread(self._commit, file, key)
        except BaseException:
            # A task could be cancelled together with its caller. A thread always removes the temporary file, as soon as
            # nobody writes to it.
            aborting = asyncio.get_running_loop().run_in_executor(None, file.abort)
            if writing is not None:
                writing.add_done_callback(_retrieved)
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
        # Delete in parallel, because a busy disk handles several requests as fast as one.
        keys = [checked(key) for key in keys]
        each = max(_DELETE_AT_LEAST, -(-len(keys) // _DELETE_AT_ONCE))
        slices = [keys[start : start + each] for start in range(0, len(keys), each)]
        await asyncio.gather(*(_in_thread(self._delete, one) for one in slices))

    async def list(self, prefix: str = "") -> AsyncIterator[Listed]:
        listing = FolderListing(self._root, checked(prefix.removesuffix("/")) if prefix else "")
        try:
            while found := await _in_thread(listing.some):
                for one in found:
                    yield one
        finally:
            await asyncio.shield(asyncio.to_thread(listing.close))

    async def remove_abandoned(self, *, older_than: float | None = None, dry_run: bool = False) -> int:
        return await _in_thread(remove_abandoned, self._root, older_than=older_than, dry_run=dry_run)

    async def free_space(self) -> int | None:
        return await _in_thread(self._free)

    async def check(self) -> None:
        await _in_thread(self._must_be_writable)

    def _create(self, key: str) -> AtomicFile:
        with folder_under(self._root, f"{WRITING}/any", create=True) as (folder, _):
            return AtomicFile(folder, key.rpartition("/")[2])

    def _commit(self, file: AtomicFile, key: str) -> Written:
        for _ in range(_TRIES):
            # Somebody may delete the last object of the folder and the folder itself between our two steps.
            with suppress(FileNotFoundError), folder_under(self._root, key, create=True) as (folder, _name):
                return file.commit(folder)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def _open(self, key: str, start: int = 0) -> io.FileIO:
        try:
            file = io.FileIO(open_under(self._root, key))  # unbuffered, because we read large pieces
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
        """Remove folders that are empty now; otherwise they would stay for ever. This is safe for writers: they have a
        file in the folder, or create the folder again."""
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
            return 0  # there is space, but no free inode
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


def _retrieved(writing: asyncio.Future[None]) -> None:
    """Retrieve the exception, which is or follows the reason of our failure."""
    if not writing.cancelled():
        writing.exception()


def _nothing(key: str) -> NotFound:
    return NotFound(f"Nothing is stored under {key!r}.")


def _failure(error: OSError) -> StorageFailed:
    detail = {"errno": errno.errorcode.get(error.errno or 0, str(error.errno))}
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(msg("storage.full"), detail=detail)
    if error.errno in _NOT_ALLOWED:
        return StorageFailed(msg("storage.folder_denied"), detail=detail)
    return StorageFailed(detail=detail)
