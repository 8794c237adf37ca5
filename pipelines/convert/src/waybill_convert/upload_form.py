"""Receiving an upload: each document is hashed and stored while it arrives. Jobs are created afterwards.

The mapping may come before or after the documents. If it comes first and is unknown, nothing is stored; if it comes
later, what was stored is removed again. `UploadReceiver.keep` marks the documents that became jobs; the others are
removed when the receiver is closed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import structlog
from fastapi import Request

from waybill.errors import BadMapping, DocumentFault, TooLarge
from waybill.failures import Failure, classify
from waybill.files import FileType, safe_name
from waybill.http.multipart import OVERHEAD, BadForm, FormReader, Part, boundary_of
from waybill.ids import new_id
from waybill.messages import msg
from waybill.storage import Storage, upload_key
from waybill.telemetry import spans
from waybill.telemetry.metrics import UPLOADS
from waybill.web.guards import TooSlow
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.mapping_catalogue import MappingChoice
from waybill_convert.models import LOSSES, Upload
from waybill_convert.upload_contents import UploadContent, unread_by

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_MB = 1024 * 1024
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
class ReceivedDocument:
    """One document of the request: it was stored, or `failure` says why not."""

    name: str
    job_id: uuid.UUID
    key: str
    bytes: int = 0
    sha256: str = ""
    kind: FileType = FileType.PDF
    failure: Failure | None = None

    def upload(self, mapping: MappingChoice, loss: str | None) -> Upload:
        return Upload(self.job_id, self.key, self.name, self.bytes, self.sha256, mapping.name, mapping.sha256, loss)


@dataclass(slots=True)
class UploadForm:
    mapping: MappingChoice
    files: list[ReceivedDocument] = field(default_factory=list)
    force: bool = False
    loss: str | None = None
    """What may be lost of an e-invoice; None if the mapping decides."""


class UploadReceiver:
    """Receives one request. Use it as a context manager around everything that may fail."""

    def __init__(
        self,
        storage: Storage,
        mappings: Mapping[str, MappingChoice],
        *,
        default: str,
        tenant: str,
        file_mb: int,
        request_mb: int,
        most_files: int,
        seconds: float,
    ) -> None:
        self._storage = storage
        self._tenant = tenant
        self._mappings = mappings
        self._default = default
        self._file_bytes = file_mb * _MB
        self._file_mb = file_mb
        self._request_mb = request_mb
        self._most_files = most_files
        self._seconds = seconds
        self._stored: set[str] = set()

    async def __aenter__(self) -> UploadReceiver:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Shielded, so that no file without a job stays behind when the client hangs up.
        await asyncio.shield(self._remove(list(self._stored)))

    def keep(self, key: str) -> None:
        """Do not remove this file: a job names it, or may."""
        self._stored.discard(key)

    def drop(self, key: str) -> None:
        """Remove this file after all: no job will name it."""
        self._stored.add(key)

    async def store(self, name: str, document: bytes) -> ReceivedDocument:
        """Store a document of our own, as if it had been uploaded."""
        job_id = new_id()
        received = ReceivedDocument(name, job_id, upload_key(job_id))
        self._stored.add(received.key)
        stored = await self._storage.put(received.key, document)
        received.bytes, received.sha256 = stored.bytes, stored.sha256
        return received

    async def receive(self, request: Request, *, one: bool) -> UploadForm:
        """Receive the whole form. With `one`, a refused document raises; otherwise the others are still received."""
        boundary = boundary_of(request.headers.get("content-type"))
        self._check_length(request)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._form(request, boundary, one)
        except TimeoutError:
            raise TooSlow(msg("convert.upload.too_slow")) from None

    def _check_length(self, request: Request) -> None:
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._request_mb * _MB + OVERHEAD:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        if self._most_files == 1:
            return TooLarge(msg("convert.upload.too_large", megabytes=self._file_mb))
        return TooLarge(msg("convert.upload.too_much", megabytes=self._request_mb))

    async def _form(self, request: Request, boundary: bytes, one: bool) -> UploadForm:
        files: list[ReceivedDocument] = []
        mapping, force, loss = None, False, None
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
                    continue  # browsers send such a part when no file was chosen
                if len(files) == self._most_files:
                    raise BadForm(msg("convert.upload.too_many", number=self._most_files))
                files.append(await self._file(part, one))
                continue
            if part.name in ("mapping", "force", "loss") and part.name in seen:
                raise BadForm(msg("convert.upload.field_twice", name=part.name))
            seen.add(part.name)
            if part.name == "mapping":
                mapping = self._mapping(await part.text(_LONGEST_FIELD))
            elif part.name == "force":
                force = _truth(await part.text(_LONGEST_FIELD))
            elif part.name == "loss":
                loss = _loss(await part.text(_LONGEST_FIELD))
            elif part.name == "file":
                raise BadForm(msg("convert.upload.field_unnamed"))
        if not files:
            raise BadForm(msg("convert.upload.no_document"))
        form = UploadForm(mapping or self._mapping(""), files, force, loss)
        form.mapping.check_loss(loss)
        self._refuse_unread(form, one)
        return form

    def _refuse_unread(self, form: UploadForm, one: bool) -> None:
        """Refuse what the mapping cannot read. It may come after the documents, so this is known only now."""
        for each in form.files:
            refusal = unread_by(form.mapping, each.kind) if each.failure is None else None
            if refusal is None:
                continue
            UPLOADS.labels("refused").inc()
            if one:
                raise refusal
            each.failure = classify(refusal)

    def _mapping(self, text: str) -> MappingChoice:
        name = text.strip().removesuffix(".json") or self._default
        if name not in self._mappings:
            raise BadMapping(msg("convert.upload.no_mapping", name=name[:100], names=sorted(self._mappings)))
        return self._mappings[name]

    async def _file(self, part: Part, one: bool) -> ReceivedDocument:
        job_id = new_id()
        received = ReceivedDocument(safe_name(part.filename or "document.pdf"), job_id, upload_key(job_id))
        # The job will have this id, so the document can be followed from its first byte on.
        with (
            spans.about_job(job_id=job_id, tenant=self._tenant, kind=CONVERT_PDF.name),
            spans.span("receive document") as span,
        ):
            await self._receive(part, received, one)
            span.set({"waybill.bytes": received.bytes})
            if received.failure is not None:
                span.fail(received.failure.code)
        return received

    async def _receive(self, part: Part, received: ReceivedDocument, one: bool) -> None:
        try:
            content = UploadContent(part.filename or "", part.content_type)
            # Noted before it is stored: whatever happens from here on, it is removed.
            self._stored.add(received.key)
            stored = await self._storage.put(received.key, content.checked(self._bounded(part)))
        except DocumentFault as error:
            UPLOADS.labels("refused").inc()
            if one:
                raise
            received.failure = classify(error)
            async for _ in part.chunks():
                pass
        else:
            received.bytes, received.sha256, received.kind = stored.bytes, stored.sha256, content.kind

    async def _bounded(self, part: Part) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in part.chunks():
            total += len(chunk)
            if total > self._file_bytes:
                raise TooLarge(msg("convert.upload.too_large", megabytes=self._file_mb))
            yield chunk

    async def _remove(self, keys: list[str]) -> None:
        for key in keys:
            try:
                await self._storage.delete(key)
            except Exception as error:  # noqa: BLE001 - the janitor finds what no row names
                log.warning("not_removed", key=key, error=str(error))


async def _any(part: Part) -> bool:
    async for chunk in part.chunks():
        if chunk:
            raise BadForm(msg("convert.upload.unnamed"))
    return False


def _loss(text: str) -> str | None:
    found = text.strip().lower()
    if found not in ("", *LOSSES):
        raise BadForm(msg("convert.upload.loss"))
    return found or None


def _truth(text: str) -> bool:
    known = _YES.get(text.strip().lower())
    if known is None:
        raise BadForm(msg("convert.upload.force"))
    return known
