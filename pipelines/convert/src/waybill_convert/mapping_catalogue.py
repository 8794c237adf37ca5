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

from waybill_documents import catalogue
from waybill_documents.mapping_folder import MappingFolder, read_folder

if TYPE_CHECKING:
    from waybill_documents.catalogue import Summary
    from waybill_documents.mapping_files import MappingFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Origin(StrEnum):
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
    origin: Origin


class MappingCatalogue:
    """What an installation knows; one per process."""

    def __init__(self, folder: MappingFolder | None = None) -> None:
        self._folder = folder or MappingFolder()
        shipped = [summary for name in catalogue.names() if (summary := catalogue.summary(name)) is not None]
        own = [mapping.summary for mapping in self._folder.mappings.values()]
        self.installed: dict[str, MappingChoice] = {
            **{each.name: _choice(each, Origin.SHIPPED) for each in shipped},
            **{each.name: _choice(each, Origin.FOLDER) for each in own},
        }

    def installed_files(self, name: str, sha256: str | None) -> MappingFiles | None:
        """The files of a mapping in the operator's folder, if it still is this version. Shipped ones need none."""
        found = self._folder.mappings.get(name)
        return found.files if found is not None and sha256 in (None, found.summary.sha256) else None


@cache
def catalogue_of(folder: Path | None) -> MappingCatalogue:
    """The catalogue with an operator's folder, which is read once. Raises `MappingFault` if it cannot be used."""
    found = read_folder(folder)
    for path in found.ignored:
        log.warning("mapping_ignored", path=str(path), setting="WAYBILL_MAPPINGS_DIR")
    return MappingCatalogue(found)


def _choice(summary: Summary, origin: Origin) -> MappingChoice:
    return MappingChoice(summary.name, summary.title, summary.sha256, origin)
