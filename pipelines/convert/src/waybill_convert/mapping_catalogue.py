"""The mappings that a document can be converted by, and the files of the very version that a job named.

A tenant has its own, those that an operator shares with all tenants, those in the operator's folder, and the shipped
ones. A name is looked for in this order. The first two are rows (`repository.mappings`), the others come with the
installation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from waybill.errors import BadMapping
from waybill.messages import msg
from waybill_convert.mapping_models import SHARED
from waybill_convert.repository import mappings
from waybill_documents import catalogue
from waybill_documents.mapping_folder import MappingFolder, read_folder

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_documents.catalogue import Summary
    from waybill_documents.mapping_files import MappingFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class MappingOrigin(StrEnum):
    """Where a mapping comes from."""

    OWN = "own"
    SHARED = "shared"
    FOLDER = "folder"
    SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class MappingChoice:
    """One that can be chosen now, in the version that it has now."""

    name: str
    title: str
    sha256: str
    origin: MappingOrigin
    embedded: bool | None
    """Whether it reads e-invoices, and not what is printed on pages. None for `auto`, which does both."""

    def check_loss(self, loss: str | None) -> None:
        """BadMapping if it is said what may be lost of an e-invoice, and the mapping reads none."""
        if loss is not None and self.embedded is False:
            raise BadMapping(msg("convert.upload.loss_needs_e_invoices", mapping=self.name))


class MappingCatalogue:
    """What an installation knows; one per process."""

    def __init__(self, folder: MappingFolder | None = None) -> None:
        self._folder = folder or MappingFolder()
        shipped = [summary for name in catalogue.names() if (summary := catalogue.summary(name)) is not None]
        own = [mapping.summary for mapping in self._folder.mappings.values()]
        self.installed: dict[str, MappingChoice] = {
            **{each.name: _choice(each, MappingOrigin.SHIPPED) for each in shipped},
            **{each.name: _choice(each, MappingOrigin.FOLDER) for each in own},
        }

    async def choices(self, connection: Connection, tenant: str) -> dict[str, MappingChoice]:
        """All that a tenant can choose from, by name."""
        stored = {
            row["name"]: MappingChoice(
                row["name"],
                row["title"],
                row["sha256"],
                MappingOrigin.SHARED if row["tenant"] == SHARED else MappingOrigin.OWN,
                row["embedded"],
            )
            for row in await mappings.choices(connection, tenant)
        }
        return {**self.installed, **stored}

    async def resolve(self, connection: Connection, tenant: str, name: str) -> str | None:
        """The hash of the version that a name means for a tenant now. None if there is no such mapping here."""
        if (stored := await mappings.resolve(connection, tenant, name)) is not None:
            return stored
        found = self.installed.get(name)
        return found.sha256 if found is not None else None

    def folder_files(self, name: str, sha256: str) -> MappingFiles | None:
        """The files of a mapping in the operator's folder, if it still is this version."""
        found = self._folder.mappings.get(name)
        return found.files if found is not None and found.summary.sha256 == sha256 else None

    async def files(self, connection: Connection, tenant: str, name: str, sha256: str | None) -> MappingFiles | None:
        """The files of the version that a job named; without a hash, of what the name means.

        None for a shipped mapping, which the gateway has, and for a version that is not here any more.
        """
        shipped = catalogue.summary(name)
        if shipped is not None and shipped.sha256 == sha256:
            return None
        if (stored := await mappings.version(connection, tenant, name, sha256)) is not None:
            return stored
        found = self._folder.mappings.get(name)
        return found.files if found is not None and sha256 in (None, found.summary.sha256) else None


@cache
def catalogue_of(folder: Path | None) -> MappingCatalogue:
    """The catalogue with an operator's folder, which is read once. Raises `MappingFault` if it cannot be used."""
    found = read_folder(folder)
    for path in found.ignored:
        log.warning("mapping_ignored", path=str(path), setting="WAYBILL_MAPPINGS_DIR")
    return MappingCatalogue(found)


def _choice(summary: Summary, origin: MappingOrigin) -> MappingChoice:
    return MappingChoice(summary.name, summary.title, summary.sha256, origin, summary.embedded)
