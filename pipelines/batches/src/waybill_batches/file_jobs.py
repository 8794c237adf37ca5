"""Which job works which file: bundles of small files, single large ones, and conversions by another pipeline."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from waybill.files import safe_name
from waybill.ids import new_id
from waybill_batches.kinds import CONVERT_PDF, ENRICH_FILE, EXTRACT_FILE
from waybill_batches.repository.batches import BatchToWork
from waybill_batches.repository.files import FileToRetry
from waybill_engine import NewJob, kind_named

BUNDLE_FILES = 64
BUNDLE_BYTES = 2**20
"""The most that one job works together: a second of work at most, so that other tenants wait no longer for a slot."""


@dataclass(slots=True)
class FileJob:
    """A job for some files of a batch."""

    id: uuid.UUID = field(default_factory=new_id)
    bytes: int = 0
    files: int = 0
    conversion: dict[str, Any] | None = None
    """The payload of the conversion, if another pipeline does it."""
    enriches: bool = False
    """Its file is extracted already, and a language model fills its fields."""

    def new_job(self, batch: BatchToWork) -> NewJob:
        kind, payload = EXTRACT_FILE, {"batch": str(batch.id)}
        if self.enriches:
            kind = kind_named(ENRICH_FILE.name)
        if self.conversion is not None:
            kind, payload = kind_named(CONVERT_PDF), self.conversion
        return NewJob(kind, batch.tenant, payload, owner=batch.owner, cost=max(self.bytes, 1), id=self.id)


class Bundler:
    """Gives each file a job, in the order in which they come."""

    def __init__(self, batch: BatchToWork) -> None:
        self._batch = batch
        self._jobs: list[FileJob] = []
        self._open: FileJob | None = None
        """The bundle that still has room."""

    def add(self, path: str, size: int, sha256: str, mapping: str | None, *, key: str | None) -> uuid.UUID:
        """The job of a file. `key` names its object if it has one of its own."""
        if key is None:
            bundle = self._bundle(size)
            bundle.bytes, bundle.files = bundle.bytes + size, bundle.files + 1
            return bundle.id
        job = FileJob(bytes=size, files=1)
        if mapping is not None:
            job.conversion = {
                "upload_key": key,
                "mapping": mapping,
                "bytes": size,
                "sha256": sha256,
                "original_name": safe_name(path),
                "reuse": True,
            }
        self._jobs.append(job)
        return job.id

    def enrich(self, size: int) -> uuid.UUID:
        """The job that has the fields of an extracted file filled."""
        self._jobs.append(FileJob(bytes=size, files=1, enriches=True))
        return self._jobs[-1].id

    def next_pack(self) -> None:
        """What comes next lies in another object. One bundle reads from one."""
        self._open = None

    def done(self) -> list[FileJob]:
        return self._jobs

    def _bundle(self, size: int) -> FileJob:
        job = self._open
        if job is None or job.files >= BUNDLE_FILES or (job.files and job.bytes + size > BUNDLE_BYTES):
            job = self._open = FileJob()
            self._jobs.append(job)
        return job


def jobs_to_retry(batch: BatchToWork, files: Iterable[FileToRetry]) -> tuple[list[FileJob], dict[int, uuid.UUID]]:
    """Jobs for files that are worked again, and which of them works which file."""
    bundler = Bundler(batch)
    jobs: dict[int, uuid.UUID] = {}
    last_pack: str | None = None
    for file in files:
        if file.extracted:
            jobs[file.number] = bundler.enrich(file.bytes)
            continue
        apart = file.source_at is None
        if not apart and file.source_key != last_pack:
            bundler.next_pack()
            last_pack = file.source_key
        key = file.source_key if apart else None
        jobs[file.number] = bundler.add(file.path, file.bytes, file.sha256, file.mapping, key=key)
    return bundler.done(), jobs
