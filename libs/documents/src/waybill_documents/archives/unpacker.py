"""Goes over all members of a ZIP and of the ZIPs in it, and can go on from any place that it has reached.

Whoever calls it may stop after any member, keep the `place`, and go on in another process: one call takes a bounded
time then, and a member that kills its process can be passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from waybill_documents.archives import member_content, member_names
from waybill_documents.archives.archive_limits import ArchiveLimits, LimitReached, UnpackBudget, too_many_files
from waybill_documents.archives.directory import TooManyEntries, ZipEntry, read_directory
from waybill_documents.archives.member_content import Content, Scratch
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage

Sniff = Callable[[BinaryIO], str]
"""What a file is, by its content. `zip` is what may be unpacked in turn."""

_ZIP = "zip"
_OPEN_XML = "[Content_Types].xml"


@dataclass(frozen=True, slots=True)
class ZipPlace:
    """Where unpacking is, and what it has counted until there."""

    at: tuple[int, ...] = ()
    """The number of the member in the ZIP, then in the nested ZIP that this is, and so on."""
    no: int = 0
    """How many members came before."""
    files: int = 0
    """How many files there are, as far as is known."""
    unpacked: int = 0
    """Bytes that were unpacked."""

    def to_json(self) -> dict[str, Any]:
        return {"at": list(self.at), "no": self.no, "files": self.files, "unpacked": self.unpacked}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> ZipPlace:
        return cls(tuple(given["at"]), given["no"], given["files"], given["unpacked"])


@dataclass(slots=True)
class ZipMember:
    """A file of the ZIP, or why it cannot be taken."""

    no: int
    path: str
    type: str
    content: Content | None
    """Its file is at its beginning, and is closed when the next member is asked for."""
    fault: DocumentRejected | None


class _Archive(NamedTuple):
    file: BinaryIO
    entries: list[ZipEntry]
    prefix: str
    """What precedes the names of its members: the path of the ZIP itself, if it is nested."""
    depth: int


class Unpacker:
    def __init__(
        self,
        file: BinaryIO,
        limits: ArchiveLimits,
        *,
        sniff: Sniff,
        scratch: Scratch,
        start: ZipPlace | None = None,
        blame: DocumentRejected | None = None,
    ) -> None:
        """`start` is where to go on. `blame` is what was wrong with the member there, which is not touched again."""
        start = start or ZipPlace()
        self._file = file
        self._limits = limits
        self._sniff = sniff
        self._scratch = scratch
        self._blame = blame
        self._start = start.at
        self._at, self._no, self._files = start.at, start.no, start.files
        self._budget = UnpackBudget(limits, start.unpacked)

    @property
    def place(self) -> ZipPlace:
        """Where it is: at the member that it works on, or behind the one it has just handed out."""
        return ZipPlace(self._at, self._no, self._files, self._budget.spent)

    def members(self, begins: Callable[[ZipPlace], None] = lambda _: None) -> Iterator[ZipMember]:
        """Each member in turn. `begins` is told the place before anything is done with the member there.

        Raises `LimitReached` for a limit on the ZIP as a whole, and `DocumentRejected` if it is no ZIP that we read.
        """
        if _is_open_document(self._file):
            raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("archive.document"))
        entries = self._directory(self._file)
        if not self._start:
            self._count(entries)
        yield from self._walk(_Archive(self._file, entries, "", 0), begins)

    def _directory(self, file: BinaryIO) -> list[ZipEntry]:
        """The members of a ZIP, unless there are none that can be read."""
        try:
            entries = read_directory(file, self._limits.files)
        except TooManyEntries:
            raise too_many_files(self._limits) from None
        files = [entry for entry in entries if not entry.is_folder]
        if not files:
            raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("archive.empty"))
        if all(entry.is_encrypted for entry in files):
            raise DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("archive.encrypted"))
        return entries

    def _count(self, entries: list[ZipEntry]) -> None:
        self._files += sum(not entry.is_folder for entry in entries)
        if self._files > self._limits.files:
            raise too_many_files(self._limits)

    def _walk(self, archive: _Archive, begins: Callable[[ZipPlace], None]) -> Iterator[ZipMember]:
        """The members of a ZIP, from the place on where to go on in it."""
        above = self._at[: archive.depth]
        first = self._start[archive.depth] if len(self._start) > archive.depth else 0
        inside = len(self._start) > archive.depth + 1
        for index in range(first, len(archive.entries)):
            entry = archive.entries[index]
            if entry.is_folder:
                continue
            opened_before, inside = inside, False
            if not opened_before:
                self._start, self._at = (), (*above, index)
                begins(self.place)
            yield from self._member(archive, entry, begins, opened_before=opened_before)
            self._at = (*above, index + 1)

    def _member(
        self, archive: _Archive, entry: ZipEntry, begins: Callable[[ZipPlace], None], *, opened_before: bool
    ) -> Iterator[ZipMember]:
        path = archive.prefix + entry.name
        content = None
        try:
            if not opened_before and self._blame is not None:
                fault, self._blame = self._blame, None
                raise fault
            _check(entry, path)
            budget = UnpackBudget(self._limits, 0) if opened_before else self._budget
            content = member_content.unpack(archive.file, entry, self._scratch, self._limits, budget)
            kind = self._sniff(content.file)
            nested = self._nested(content.file, archive, path, opened_before=opened_before) if kind == _ZIP else None
            if nested is not None:
                yield from self._walk(nested, begins)
                return
            content.file.seek(0)
            yield self._numbered(path, kind, content)
        except LimitReached:
            raise
        except DocumentRejected as fault:
            yield self._numbered(member_names.shown(path), fault=fault)
        finally:
            if content is not None:
                content.file.close()

    def _nested(self, content: BinaryIO, archive: _Archive, path: str, *, opened_before: bool) -> _Archive | None:
        """The ZIP that this member is; None if it is a document of a sort that is packed like one."""
        if _is_open_document(content):
            return None
        if archive.depth >= self._limits.depth:
            raise DocumentRejected(FaultCode.TOO_DEEP, DocumentMessage("member.too_deep", most=self._limits.depth))
        entries = self._directory(content)
        if any(entry.name == _OPEN_XML for entry in entries):
            return None
        if not opened_before:
            self._files -= 1
            self._count(entries)
        return _Archive(content, entries, f"{path}/", archive.depth + 1)

    def _numbered(
        self, path: str, kind: str = "", content: Content | None = None, fault: DocumentRejected | None = None
    ) -> ZipMember:
        """A member that is handed out. The place is behind it from now on."""
        member = ZipMember(self._no, path, kind, content, fault)
        self._no += 1
        self._at = (*self._at[:-1], self._at[-1] + 1)
        return member


def _check(entry: ZipEntry, path: str) -> None:
    """Refuse a member for what the list says about it."""
    if (says := member_names.fault_of(entry.name)) is not None:
        raise DocumentRejected(FaultCode.UNSAFE_NAME, says)
    if len(path) > member_names.LONGEST:
        says = DocumentMessage("member.path_too_long", most=member_names.LONGEST)
        raise DocumentRejected(FaultCode.UNSAFE_NAME, says)
    if entry.is_special:
        raise DocumentRejected(FaultCode.UNSAFE_NAME, DocumentMessage("member.special"))
    if entry.is_encrypted:
        raise DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("member.encrypted"))


def _is_open_document(content: BinaryIO) -> bool:
    """Whether it is a document of OpenOffice or an e-book, whose first member says so."""
    content.seek(0)
    return content.read(38)[30:] == b"mimetype"
