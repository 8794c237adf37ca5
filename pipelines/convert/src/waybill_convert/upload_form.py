"""A request with documents in it, received: each PDF goes to storage while it is hashed, and nothing is a job yet.

The mapping may stand before or after the documents. If it comes first and is unknown, nothing is stored at all; if it
comes later, what was stored is removed again. `Receiving.keep` says which documents became jobs; the rest goes.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import structlog
from fastapi import Request

from waybill.errors import BadMapping, DocumentFault, Failure, NotPdf, TooLarge, classify
from waybill.files import safe_name
from waybill.http.multipart import OVERHEAD, BadForm, FormReader, Part, boundary_of
from waybill.ids import new_id
from waybill.storage import Storage, upload_key
from waybill.web.guards import TooSlow
from waybill_convert.kinds import DEFAULT_MAPPING
from waybill_convert.models import Upload

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_MB = 1024 * 1024
_MAGIC, _MAGIC_WITHIN = b"%PDF-", 1024
"""Readers accept this much of anything before it; printers and mailers do put it there."""
_TYPES = frozenset({None, "", "application/pdf", "application/x-pdf", "application/octet-stream"})
_LONGEST_FIELD = 200
_YES = {
    "true": True,
    "1": True,
    "on": True,
    "yes": True,
    "false": False,
    "0": False,
    "off": False,
    "no": False,
    "": False,
}


@dataclass(slots=True)
class Received:
    """One document of the request: stored, or refused and why."""

    name: str
    job_id: uuid.UUID
    key: str
    bytes: int = 0
    sha256: str = ""
    failure: Failure | None = None

    def upload(self, mapping: str) -> Upload:
        return Upload(self.job_id, self.key, self.name, self.bytes, self.sha256, mapping)


@dataclass(slots=True)
class Form:
    files: list[Received] = field(default_factory=list)
    mapping: str = DEFAULT_MAPPING
    force: bool = False


class Receiver:
    """For one request; use it as a context manager around everything that may fail."""

    def __init__(
        self, storage: Storage, mappings: list[str], *, file_mb: int, request_mb: int, most_files: int, seconds: float
    ) -> None:
        self._storage = storage
        self._mappings = mappings
        self._file_bytes = file_mb * _MB
        self._file_mb = file_mb
        self._request_mb = request_mb
        self._most_files = most_files
        self._seconds = seconds
        self._stored: set[str] = set()

    async def __aenter__(self) -> Receiver:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Shielded: also when the client hangs up, nothing stays behind that no job names.
        await asyncio.shield(self._remove(list(self._stored)))

    def keep(self, key: str) -> None:
        """A job names it now, or may: it stays."""
        self._stored.discard(key)

    def drop(self, key: str) -> None:
        """No job will name it after all."""
        self._stored.add(key)

    async def store(self, name: str, document: bytes) -> Received:
        """A document of our own, as if it had been sent."""
        job_id = new_id()
        received = Received(name, job_id, upload_key(job_id))
        self._stored.add(received.key)
        stored = await self._storage.put(received.key, document)
        received.bytes, received.sha256 = stored.bytes, stored.sha256
        return received

    async def receive(self, request: Request, *, one: bool) -> Form:
        """The whole form. With `one`, a document that is refused ends it; otherwise the others go on."""
        boundary = boundary_of(request.headers.get("content-type"))
        self._check_length(request)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._form(request, boundary, one)
        except TimeoutError:
            raise TooSlow("The document did not arrive in time.") from None

    def _check_length(self, request: Request) -> None:
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._request_mb * _MB + OVERHEAD:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        if self._most_files == 1:
            return TooLarge(f"This file is larger than {self._file_mb} MB. Please upload a smaller one.")
        return TooLarge(f"This is more than {self._request_mb} MB at once. Please upload fewer files at a time.")

    async def _form(self, request: Request, boundary: bytes, one: bool) -> Form:
        form = Form()
        reader = FormReader(
            request.stream(),
            boundary,
            most_bytes=self._request_mb * _MB + OVERHEAD,
            most_parts=self._most_files + 10,
        )
        seen: set[str] = set()
        async for part in reader.parts():
            if part.is_file:
                if not part.filename and not await _any(part):
                    continue  # what a browser sends for a file that was not chosen
                if len(form.files) == self._most_files:
                    raise BadForm(f"One request brings at most {self._most_files} documents.")
                form.files.append(await self._file(part, one))
                continue
            if part.name in ("mapping", "force") and part.name in seen:
                raise BadForm(f"The field '{part.name}' is there twice.")
            seen.add(part.name)
            if part.name == "mapping":
                form.mapping = self._mapping(await part.text(_LONGEST_FIELD))
            elif part.name == "force":
                form.force = _truth(await part.text(_LONGEST_FIELD))
            elif part.name == "file":
                raise BadForm("The field 'file' has no file name: send it as a file.")
        if not form.files:
            raise BadForm("The form has no document: send it in the field 'file'.")
        return form

    def _mapping(self, text: str) -> str:
        name = text.strip().removesuffix(".json") or DEFAULT_MAPPING
        if name not in self._mappings:
            raise BadMapping(f"There is no mapping {name[:100]!r} here. Choose one of: {', '.join(self._mappings)}.")
        return name

    async def _file(self, part: Part, one: bool) -> Received:
        job_id = new_id()
        received = Received(safe_name(part.filename or "document.pdf"), job_id, upload_key(job_id))
        try:
            self._check_name(part)
            # Named before it is there: whatever happens from here on, it is removed.
            self._stored.add(received.key)
            stored = await self._storage.put(received.key, self._checked(part))
        except DocumentFault as error:
            if one:
                raise
            received.failure = classify(error)
            async for _ in part.chunks():
                pass
        else:
            received.bytes, received.sha256 = stored.bytes, stored.sha256
        return received

    def _check_name(self, part: Part) -> None:
        if not (part.filename or "").strip().lower().endswith(".pdf"):
            raise NotPdf("This file is not called .pdf. Please upload the PDF itself.")
        if part.content_type not in _TYPES:
            raise NotPdf("This file was sent as something else than a PDF. Please upload the PDF itself.")

    async def _checked(self, part: Part) -> AsyncIterator[bytes]:
        """The document's bytes, once it has shown itself to be a PDF, as far as it is not too large."""
        head, total, is_pdf = b"", 0, False
        async for chunk in part.chunks():
            total += len(chunk)
            if total > self._file_bytes:
                raise TooLarge(f"This file is larger than {self._file_mb} MB. Please upload a smaller one.")
            if is_pdf:
                yield chunk
                continue
            head += chunk
            is_pdf = _MAGIC in head[: _MAGIC_WITHIN + len(_MAGIC)]
            if is_pdf:
                yield head
            elif len(head) > _MAGIC_WITHIN + len(_MAGIC):
                break
        if not is_pdf:
            raise NotPdf()

    async def _remove(self, keys: list[str]) -> None:
        for key in keys:
            try:
                await self._storage.delete(key)
            except Exception as error:  # noqa: BLE001 - the janitor finds what no row names
                log.warning("not_removed", key=key, error=str(error))


async def _any(part: Part) -> bool:
    async for chunk in part.chunks():
        if chunk:
            raise BadForm("A document has no file name.")
    return False


def _truth(text: str) -> bool:
    known = _YES.get(text.strip().lower())
    if known is None:
        raise BadForm("The field 'force' is true or false.")
    return known
