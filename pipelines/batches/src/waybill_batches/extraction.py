"""The work of an `extract_file` job: its files go to the gateway in one pack, their results come back and are stored in
one pack, and each file ends for itself."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from waybill.errors import Code, GatewayUnavailable, IoFailure, NotFound
from waybill.files import packs
from waybill.gateway_client.connections import json_object
from waybill.gateway_client.source import Source
from waybill.messages import msg
from waybill_batches.clients.gateway import BatchGateway, problem_error
from waybill_batches.models import FileEnd, KnownResult, WorkFile

if TYPE_CHECKING:
    from waybill.storage import Storage

EXTRACTOR = f"waybill {version('waybill-documents')}"
"""What makes results here. A release that reads better has another name, so that old results are not taken for new."""

_OK = 200


class Results:
    """The results of a job's files, in the order in which they were made."""

    def __init__(self) -> None:
        self._pack = bytearray()
        self.ends: list[FileEnd] = []

    @property
    def pack(self) -> bytes:
        """All results, one after the other; empty if there is none."""
        return bytes(self._pack)

    def sorted_by(self, waits: Callable[[FileEnd], bool]) -> tuple[list[FileEnd], list[FileEnd]]:
        """Those that have ended, and those that wait for something else."""
        return [one for one in self.ends if not waits(one)], [one for one in self.ends if waits(one)]

    def keep(self, file: WorkFile, result: bytes, milliseconds: float) -> None:
        at = self._packed(result)
        self.ends.append(FileEnd(file.number, milliseconds, at=at, bytes=len(result), extractor=EXTRACTOR))

    def keep_copy(self, file: WorkFile, result: bytes, known: KnownResult) -> None:
        self.ends.append(known.end_of(file.number, self._packed(result)))

    def _packed(self, result: bytes) -> int:
        """Where it begins."""
        at = len(self._pack)
        self._pack += result
        return at

    def refuse(self, file: WorkFile, error: dict[str, object], milliseconds: float) -> None:
        self.ends.append(FileEnd(file.number, milliseconds, error))


async def extract(
    storage: Storage, gateway: BatchGateway, files: Sequence[WorkFile], known: Mapping[str, KnownResult], job_id: str
) -> Results:
    """Work these files. What is known already is copied; the rest goes to the gateway together."""
    results = Results()
    new = [file for file in files if not await _copied(storage, file, known.get(file.sha256), results)]
    if new:
        await _worked(storage, gateway, new, job_id, results)
    return results


async def _copied(storage: Storage, file: WorkFile, known: KnownResult | None, results: Results) -> bool:
    result = await known_content(storage, known) if known is not None else None
    if known is None or result is None:
        return False
    results.keep_copy(file, result, known)
    return True


async def known_content(storage: Storage, known: KnownResult) -> bytes | None:
    """An earlier result; None if it is no longer stored."""
    try:
        result = await read_range(storage, known.key, known.at, known.at + known.bytes)
    except NotFound:
        return None  # the janitor was faster
    return result if len(result) == known.bytes else None


async def _worked(
    storage: Storage, gateway: BatchGateway, files: Sequence[WorkFile], job_id: str, results: Results
) -> None:
    heads = [packs.frame_head({"no": file.number, "type": file.type}, file.source.bytes) for file in files]
    end = packs.end_frame()
    size = sum(map(len, heads)) + sum(file.source.bytes for file in files) + len(end)

    async def pack() -> AsyncIterator[bytes]:
        contents = _contents(storage, files)
        for head in heads:
            yield head
            yield await anext(contents)
        yield end

    answers = await gateway.extract(Source(pack(), size), job_id)
    if [header.get("no") for header, _ in answers] != [file.number for file in files]:
        raise GatewayUnavailable(msg("batches.gateway.bad_pack", why="its documents are others than those sent"))
    for file, (header, body) in zip(files, answers, strict=True):
        milliseconds = float(header.get("ms", 0))
        if header.get("status") == _OK:
            results.keep(file, body, milliseconds)
        else:
            results.refuse(file, problem_error(json_object(body), Code.PARSE_ERROR), milliseconds)


async def _contents(storage: Storage, files: Sequence[WorkFile]) -> AsyncIterator[bytes]:
    """The files' contents. Those that lie in one object are read from it at once."""
    at = 0
    while at < len(files):
        key = files[at].source.key
        upto = at
        while upto < len(files) and files[upto].source.key == key:
            upto += 1
        together = files[at:upto]
        start, stop = min(file.source.range[0] for file in together), max(file.source.range[1] for file in together)
        held = await read_range(storage, key, start, stop)
        for file in together:
            begin, end = file.source.range
            content = held[begin - start : end - start]
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise IoFailure(msg("gateway_call.document_changed"), detail={"key": key, "number": file.number})
            yield content
        at = upto


async def read_range(storage: Storage, key: str, start: int, stop: int) -> bytes:
    read = bytearray()
    async for chunk in storage.stream(key, start, stop):
        read += chunk
    return bytes(read)
