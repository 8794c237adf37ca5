"""Receiving the ZIP of a batch: it is hashed and stored while it arrives, and the form's fields may follow it.

What was stored is removed again when the receiver is closed, unless it became a batch (`keep`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import structlog
from fastapi import Request

from waybill.errors import DocumentFault, Refused, TooLarge
from waybill.files import FileType, safe_name
from waybill.http.multipart import OVERHEAD, BadForm, FormReader, Part, boundary_of
from waybill.ids import new_id
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.storage import Storage
from waybill.storage.keys import dated
from waybill.telemetry import spans
from waybill.web.guards import TooSlow
from waybill_batches.kinds import SUMMARIZE_RUN
from waybill_batches.mapping_rules import MappingRules
from waybill_batches.models import ReceivedZip
from waybill_batches.settings import BatchSettings
from waybill_batches.wanted_fields import WantedFields

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_MB = 2**20
_MOST_PARTS = 12
_LONGEST_NAME = 200
_LONGEST_FIELD = 64 * 1024
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
"""How a ZIP begins: with a file, with its end because it is empty, or because it was one of several parts."""
_YES = frozenset({"true", "1", "on", "yes"})
_NO = frozenset({"false", "0", "off", "no", ""})
_FIELDS = ("name", "rules", "schema", "force")


@dataclass(slots=True)
class BatchForm:
    zip: ReceivedZip
    name: str
    rules: MappingRules = field(default_factory=MappingRules)
    wanted: WantedFields | None = None
    force: bool = False


class ZipReceiver:
    """Receives one request. Use it as a context manager around everything that may fail."""

    def __init__(self, storage: Storage, settings: BatchSettings, tenant: str) -> None:
        self._storage = storage
        self._most = settings.batch_max_mb * _MB
        self._megabytes = settings.batch_max_mb
        self._seconds = settings.batch_upload_timeout
        self._asks_model = settings.llm_url is not None
        self._tenant = tenant
        self._stored: set[str] = set()

    async def __aenter__(self) -> ZipReceiver:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Shielded, so that no ZIP without a batch stays behind when the client hangs up.
        await asyncio.shield(self._remove(list(self._stored)))

    def keep(self, key: str) -> None:
        """Do not remove this ZIP: a batch names it, or may."""
        self._stored.discard(key)

    def drop(self, key: str) -> None:
        """Remove this ZIP after all: no batch will name it."""
        self._stored.add(key)

    async def receive(self, request: Request) -> BatchForm:
        boundary = boundary_of(request.headers.get("content-type"))
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._most + OVERHEAD:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._form(request, boundary)
        except TimeoutError:
            raise TooSlow(msg("batches.upload.too_slow")) from None

    async def _form(self, request: Request, boundary: bytes) -> BatchForm:
        received: ReceivedZip | None = None
        fields: dict[str, str] = {}
        reader = FormReader(request.stream(), boundary, most_bytes=self._most + OVERHEAD, most_parts=_MOST_PARTS)
        async for part in reader.parts():
            if part.is_file and part.name not in _FIELDS:
                if not part.filename and not await _any(part):
                    continue  # browsers send such a part when no file was chosen
                if received is not None:
                    raise BadForm(msg("batches.upload.two_files"))
                received = await self._zip(part)
            elif part.name in _FIELDS:
                if part.name in fields:
                    raise BadForm(msg("batches.upload.field_twice", name=part.name))
                fields[part.name] = await part.text(_LONGEST_FIELD)
        if received is None:
            raise BadForm(msg("batches.upload.no_zip"))
        return BatchForm(
            received,
            _name(fields.get("name", ""), received.name),
            MappingRules.parse(fields.get("rules", "")),
            self._wanted(fields.get("schema", "")),
            _truth(fields.get("force", "")),
        )

    def _wanted(self, text: str) -> WantedFields | None:
        wanted = WantedFields.parse(text)
        if wanted is not None and not self._asks_model:
            raise Refused(msg("batches.schema.no_model"))
        return wanted

    async def _zip(self, part: Part) -> ReceivedZip:
        batch_id = new_id()
        key = f"{dated('batches', batch_id)}.zip"
        # The batch will have this id, so the ZIP can be followed from its first byte on.
        with (
            spans.about_job(job_id=batch_id, tenant=self._tenant, kind=SUMMARIZE_RUN.name),
            spans.span("receive ZIP") as span,
        ):
            self._stored.add(key)  # noted before it is stored: whatever happens from here on, it is removed
            stored = await self._storage.put(key, self._checked(part))
            span.set({"waybill.bytes": stored.bytes})
        return ReceivedZip(batch_id, key, safe_name(part.filename or "batch.zip"), stored.bytes, stored.sha256)

    async def _checked(self, part: Part) -> AsyncIterator[bytes]:
        """The ZIP's bytes, as long as they look like one."""
        total, head = 0, b""
        async for chunk in part.chunks():
            if len(head) < 4:
                head += chunk[:4]
                if len(head) >= 4 and not head.startswith(_ZIP):
                    raise NotZip(msg("batches.upload.not_zip"))
            total += len(chunk)
            if total > self._most:
                raise self._too_large()
            yield chunk
        if len(head) < 4:
            raise NotZip(msg("batches.upload.not_zip"))

    def _too_large(self) -> TooLarge:
        return TooLarge(msg("batches.upload.too_large", megabytes=self._megabytes))

    async def _remove(self, keys: list[str]) -> None:
        for key in keys:
            try:
                await self._storage.delete(key)
            except Exception as error:  # noqa: BLE001 - the janitor finds what no row names
                log.warning("not_removed", key=key, error=str(error))


class NotZip(DocumentFault):
    """What was uploaded is no ZIP."""


def _name(given: str, file: str) -> str:
    name = " ".join(given.split())
    if len(name) > _LONGEST_NAME or not is_storable(name):
        raise Refused(msg("batches.upload.name", number=_LONGEST_NAME))
    return name or file.removesuffix(".zip").removesuffix(f".{FileType.ZIP.upper()}") or file


async def _any(part: Part) -> bool:
    async for chunk in part.chunks():
        if chunk:
            raise BadForm(msg("batches.upload.unnamed"))
    return False


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise BadForm(msg("batches.upload.force"))
    return word in _YES
