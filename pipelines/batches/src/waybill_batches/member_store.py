"""What becomes of a ZIP: its files are stored, each gets a row, and jobs are made for them.

Small files are stored together in packs, and worked together: a store of ten thousand tiny objects is slow everywhere,
and so are ten thousand tiny jobs. A file that another pipeline converts has an object and a job of its own, and so has
a large one. A file that is the same as an earlier one of the batch is its twin and needs nothing.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waybill.errors import Code, DocumentFault, GatewayUnavailable
from waybill.files import FileType, packs
from waybill.messages import msg
from waybill.storage import Stored
from waybill_batches.clients.gateway import problem_error
from waybill_batches.file_jobs import Bundler, FileJob
from waybill_batches.mapping_rules import MappingRules
from waybill_batches.repository.batches import BatchToWork
from waybill_batches.repository.files import NewFile
from waybill_batches.status import FileStatus

if TYPE_CHECKING:
    from waybill_engine import JobContext

PACK_BYTES = 2 * 2**20
SMALL_BYTES = 256 * 1024
"""The largest file that is stored in a pack."""

READABLE = frozenset({FileType.PDF, FileType.DOCX, FileType.XLSX, FileType.TEXT, FileType.XML, FileType.JSON})
"""What can be extracted."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """An object that was stored, and will be the job's artefact under this name."""

    name: str
    stored: Stored


@dataclass(slots=True)
class UnpackedZip:
    """Everything that the transaction which ends the unpacking writes."""

    files: list[NewFile] = field(default_factory=list)
    parts: list[StoredPart] = field(default_factory=list)
    jobs: list[FileJob] = field(default_factory=list)


class MemberStore:
    """Takes the members of one ZIP, one after the other. Memory holds one pack, however many they are."""

    def __init__(self, job: JobContext, batch: BatchToWork) -> None:
        self._job = job
        self._batch = batch
        self._rules: MappingRules = batch.rules
        self._found = UnpackedZip()
        self._pack = bytearray()
        self._in_pack: list[int] = []
        """The rows whose content is in the pack that is being filled."""
        self._seen: dict[tuple[str, str | None], int] = {}
        self._paths: dict[tuple[str, str], int] = {}
        self._bundler = Bundler(batch)

    async def keep(self, members: AsyncIterator[packs.Frame]) -> UnpackedZip:
        """Store all of them. Raises a DocumentFault if the ZIP as a whole is refused."""
        async for header, content in members:
            if header.get("end"):
                if isinstance(refused := header.get("problem"), dict):
                    raise _refusal(refused)
            else:
                await self._take(header, content)
        await self._flush()
        if not self._found.files:
            raise DocumentFault(msg("batches.empty_zip"))
        self._found.jobs = self._bundler.done()
        return self._found

    async def _take(self, header: dict[str, Any], content: bytes) -> None:
        number, path = len(self._found.files), str(header.get("path", ""))
        if isinstance(problem := header.get("problem"), dict):
            self._add(number, path, FileType.UNKNOWN, 0, "", error=problem_error(problem, Code.PARSE_ERROR))
            return
        try:
            kind, sha256 = str(header["type"]), str(header["sha256"])
        except KeyError as error:
            raise GatewayUnavailable(msg("batches.gateway.bad_pack", why=f"no {error}")) from error
        if kind not in READABLE:
            self._add(number, path, kind, len(content), sha256, error=_unreadable(kind))
            return
        mapping = self._rules.mapping_for(path, kind)
        if (first := self._seen.setdefault((sha256, mapping), number)) != number:
            self._add(number, path, kind, len(content), sha256, mapping=mapping, twin_of=first)
            return
        apart = mapping is not None or len(content) > SMALL_BYTES
        key = await self._stored_apart(number, content) if apart else None
        at = await self._stored_in_pack(number, content) if key is None else None
        job = self._bundler.add(path, len(content), sha256, mapping, key=key)
        self._add(number, path, kind, len(content), sha256, mapping=mapping, job_id=job, key=key, at=at)

    def _add(
        self,
        number: int,
        path: str,
        kind: str,
        size: int,
        sha256: str,
        *,
        mapping: str | None = None,
        twin_of: int | None = None,
        job_id: uuid.UUID | None = None,
        error: dict[str, Any] | None = None,
        key: str | None = None,
        at: int | None = None,
    ) -> None:
        if twin_of is not None:
            job_id = self._found.files[twin_of].job_id
        self._found.files.append(
            NewFile(
                self._batch.id,
                number,
                self._batch.owner,
                self._doc_id(path, sha256),
                path,
                kind,
                size,
                sha256,
                mapping,
                twin_of,
                FileStatus.QUEUED if error is None else FileStatus.FAILED,
                job_id,
                json.dumps(error) if error is not None else None,
                None,
                key,
                at,
            )
        )

    def _doc_id(self, path: str, sha256: str) -> str:
        """The same in every batch. A ZIP may have the same content twice under one path; then its place counts, too."""
        before = self._paths.get((path, sha256), 0)
        self._paths[path, sha256] = before + 1
        text = f"{path}\0{sha256}" if before == 0 else f"{path}\0{sha256}\0{before}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    async def _stored_apart(self, number: int, content: bytes) -> str:
        stored = await self._job.store(f"file-{number:06}", content)
        self._found.parts.append(StoredPart(f"file-{number:06}", stored))
        return stored.key

    async def _stored_in_pack(self, number: int, content: bytes) -> int:
        if self._pack and len(self._pack) + len(content) > PACK_BYTES:
            await self._flush()
        at = len(self._pack)
        self._pack += content
        self._in_pack.append(number)
        return at

    async def _flush(self) -> None:
        """Store the pack that was filled. Its rows get its key."""
        if not self._in_pack:
            return
        name = f"files-{len(self._found.parts):06}"
        stored = await self._job.store(name, bytes(self._pack))
        self._found.parts.append(StoredPart(name, stored))
        for number in self._in_pack:
            self._found.files[number] = self._found.files[number]._replace(source_key=stored.key)
        self._bundler.next_pack()
        self._pack, self._in_pack = bytearray(), []


def _refusal(problem: dict[str, Any]) -> DocumentFault:
    said = problem_error(problem, Code.PARSE_ERROR)
    fault = DocumentFault(said["message"])
    fault.key, fault.params = said["key"], said["params"]
    return fault


def _unreadable(kind: str) -> dict[str, Any]:
    said = msg(f"batches.unreadable.{kind}" if kind in _EXPLAINED else "batches.unreadable.other")
    return {"code": Code.NOT_PDF, "message": str(said), "key": said.key, "params": {}}


_EXPLAINED: Sequence[FileType] = (
    FileType.EMPTY,
    FileType.DOC,
    FileType.XLS,
    FileType.PPT,
    FileType.PPTX,
    FileType.ENCRYPTED_OFFICE,
    FileType.PNG,
    FileType.JPEG,
)
