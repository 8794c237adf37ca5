"""The mappings that a document may choose from, as they were when it was uploaded.

A job names its catalogue by a hash, so every attempt chooses among the same mappings, whatever was published meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill.errors import BadMapping
from waybill.messages import msg
from waybill_convert.mapping_catalogue import MappingChoice, MappingOrigin
from waybill_convert.repository import mapping_catalogues
from waybill_documents.catalogue import AUTO

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_convert.mapping_catalogue import MappingCatalogue
    from waybill_documents.mapping_files import MappingFiles

MOST_CANDIDATES = 300
"""As many as the gateway takes with a document."""
_MOST_KEPT = 16


class PinnedMapping(NamedTuple):
    """One mapping of a catalogue, in the version that it had."""

    name: str
    sha256: str
    origin: MappingOrigin


@dataclass(frozen=True, slots=True)
class PinnedCatalogue:
    """All mappings that one document may choose from, by name."""

    entries: tuple[PinnedMapping, ...]

    @classmethod
    def of(cls, choices: Iterable[MappingChoice]) -> PinnedCatalogue:
        """The catalogue with these mappings."""
        return cls(tuple(sorted(PinnedMapping(each.name, each.sha256, each.origin) for each in choices)))

    @classmethod
    def from_json(cls, text: str) -> PinnedCatalogue:
        """What `to_json` wrote."""
        return cls(
            tuple(PinnedMapping(name, sha256, MappingOrigin(origin)) for name, sha256, origin in json.loads(text))
        )

    def to_json(self) -> str:
        """The entries, for the database."""
        return json.dumps([[*entry] for entry in self.entries])

    @property
    def sha256(self) -> str:
        """Its identity: the same mappings in the same versions have the same."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def has(self, name: str, sha256: str | None) -> bool:
        """Whether this version of a mapping is in it."""
        return any((entry.name, entry.sha256) == (name, sha256) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class AutoChoice(MappingChoice):
    """`auto` beside the mappings that can be chosen by name. Its hash is that of its catalogue."""

    catalogue: PinnedCatalogue

    @classmethod
    def among(cls, choices: Iterable[MappingChoice]) -> AutoChoice:
        """`auto` among these mappings."""
        pinned = PinnedCatalogue.of(choices)
        return cls(AUTO, AUTO, pinned.sha256, MappingOrigin.SHIPPED, None, pinned)

    async def pin(self, connection: Connection) -> None:
        """Keep the catalogue for the job that is about to name it. BadMapping if the gateway cannot take so many."""
        count = len(self.catalogue.entries)
        if count > MOST_CANDIDATES:
            raise BadMapping(msg("convert.upload.too_many_candidates", count=count, most=MOST_CANDIDATES))
        await mapping_catalogues.pin(connection, self.sha256, self.catalogue.to_json())


class OfferedCatalogue(NamedTuple):
    """A catalogue, and the gateway's form field `mappings` with it."""

    pinned: PinnedCatalogue
    field: str


class CatalogueCache:
    """The form fields of the catalogues that were used last; one per process.

    A hash means the same for ever, so a hundred mappings are not read from the database for each document.
    """

    def __init__(self, *, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], OfferedCatalogue] = OrderedDict()

    async def get(
        self, connection: Connection, catalogue: MappingCatalogue, tenant: str, sha256: str
    ) -> OfferedCatalogue:
        """The candidates of a job of this tenant. BadMapping if they are not here any more."""
        known = tenant, sha256
        if known in self._kept:
            self._kept.move_to_end(known)
            return self._kept[known]
        found = await mapping_catalogues.get(connection, sha256)
        if found is None:
            raise BadMapping(msg("convert.catalogue_gone"))
        pinned = PinnedCatalogue.from_json(found)
        made = self._kept[known] = OfferedCatalogue(pinned, await _field(connection, catalogue, tenant, pinned))
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return made


async def _field(connection: Connection, catalogue: MappingCatalogue, tenant: str, pinned: PinnedCatalogue) -> str:
    """Shipped mappings by their hashes, because the gateway has them; the others with their files."""
    stored = await mapping_catalogues.files(connection, tenant, [entry[:2] for entry in pinned.entries])
    entries = [_entry(entry, _files(entry, stored, catalogue)) for entry in pinned.entries]
    return json.dumps(entries, ensure_ascii=False)


def _files(
    entry: PinnedMapping, stored: dict[tuple[str, str], MappingFiles], catalogue: MappingCatalogue
) -> MappingFiles | None:
    if entry.origin is MappingOrigin.SHIPPED:
        return None
    in_folder = entry.origin is MappingOrigin.FOLDER
    files = catalogue.folder_files(entry.name, entry.sha256) if in_folder else stored.get(entry[:2])
    if files is None:
        raise BadMapping(msg("convert.candidate_gone", name=entry.name))
    return files


def _entry(entry: PinnedMapping, files: MappingFiles | None) -> dict[str, Any]:
    named = {"name": entry.name, "sha256": entry.sha256}
    return named if files is None else {**named, "document": files.document, "schemas": dict(files.schemas)}
