"""What a backup says about itself: of what and when it was made, and the hash of everything in it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ValidationError

from waybill.errors import Refused, UnsafePath
from waybill.files.private import write_private
from waybill.storage.keys import checked
from waybill_cli.backup.backup_folder import OBJECTS
from waybill_cli.backup.withdrawals import Withdrawals

FORMAT = 1
DUMP, STORAGE, MANIFEST = "database.dump", "storage", "manifest.json"


class BackedUpObject(BaseModel):
    """A line of `objects.jsonl`."""

    key: str
    bytes: int
    sha256: str
    modified: datetime
    """When it was stored. The next backup takes an object with the same key, size and time for the same."""


class HashedFile(BaseModel):
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        digest = hashlib.sha256()
        size = 0
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                size += len(piece)
        return cls(bytes=size, sha256=digest.hexdigest())


class BackedUpRevision(BaseModel):
    """A revision of the schema that the dump contains."""

    name: str
    branch: str
    oldest_release: str | None


class Manifest(BaseModel):
    format: int
    release: str
    started_at: datetime
    """Everything that was committed before this is in the backup."""
    finished_at: datetime
    postgres: int
    """The server's major version."""
    dumped_by: int
    """The major version of `pg_dump`. No older `pg_restore` can read what it wrote."""
    revisions: list[BackedUpRevision]
    database: HashedFile
    objects: HashedFile | None
    """The list of the storage's objects; None if the backup is without the storage."""
    object_count: int = 0
    object_bytes: int = 0
    mark: str | None = None
    """The mark of the storage, which the dump's database will look for (`waybill-owner`)."""
    withdrawals: Withdrawals

    def write(self, backup: Path) -> None:
        body = self.model_dump(mode="json")
        write_private(backup / MANIFEST, json.dumps({**body, "sha256": _hash(body)}, indent=2) + "\n")


def read_manifest(backup: Path) -> Manifest:
    """Refused if this is no backup, a damaged one, or one in a form that only a newer release knows."""
    try:
        body = json.loads((backup / MANIFEST).read_text())
        claimed = body.pop("sha256")
        if body["format"] > FORMAT:
            raise Refused(f"{backup} was made by release {body.get('release')}. Restore it with that one, or a newer.")
        if claimed != _hash(body):
            raise Refused(f"{backup / MANIFEST} is damaged. Use another backup.")
        return Manifest.model_validate(body)
    except OSError as error:
        raise Refused(f"{backup} is no backup: its {MANIFEST} cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise Refused(f"{backup / MANIFEST} is damaged. Use another backup.") from error


def objects_of(backup: Path) -> Iterator[BackedUpObject]:
    """The storage's objects in a backup."""
    path = backup / OBJECTS
    if path.exists():
        with path.open() as lines:
            for line in lines:
                yield BackedUpObject.model_validate_json(line)


async def damage(backup: Path, manifest: Manifest) -> list[str]:
    """Everything in the backup that is not as it was written; nothing, if all of it is there and whole."""
    return await asyncio.to_thread(lambda: list(_damage(backup, manifest)))


def _damage(backup: Path, manifest: Manifest) -> Iterator[str]:
    files = {DUMP: manifest.database, OBJECTS: manifest.objects}
    wrong = [why for name, file in files.items() if file and (why := _difference(backup / name, file))]
    yield from wrong
    if wrong or manifest.objects is None:
        return  # a list that is wrong says nothing about the objects
    for one in objects_of(backup):
        try:
            path = backup / STORAGE / checked(one.key)
        except UnsafePath as error:
            yield error.message
            continue
        if why := _difference(path, HashedFile(bytes=one.bytes, sha256=one.sha256)):
            yield why


def _difference(path: Path, expected: HashedFile) -> str | None:
    try:
        found = HashedFile.of(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if found == expected:
        return None
    return f"{path}: it has {found.bytes:,} bytes of {expected.bytes:,}, or other ones"


def _hash(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
