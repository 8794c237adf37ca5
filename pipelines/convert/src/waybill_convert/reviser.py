"""Applies corrections, with the help of the document library.

The library is imported with the first correction, because it needs many megabytes that other processes can do without.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from waybill.errors import Refused
from waybill.messages import msg
from waybill_convert.revision_models import Json, Revised, Typed, Unfit

if TYPE_CHECKING:
    from waybill_documents.mapping.loader import LoadedMapping
    from waybill_documents.mapping_files import MappingFiles
    from waybill_documents.reading import Reading

_alone = threading.Lock()
"""Only one thread at a time may use a mapping's schema."""


class MappingReviser:
    """Corrects records by the mapping that made them: a shipped one, or the job's own, which comes as `files`."""

    def __init__(self, files: MappingFiles | None = None) -> None:
        self._files = files
        self._found: dict[str, LoadedMapping] = {}

    def revise(self, record: Json, typed: Sequence[Typed]) -> Revised:
        from waybill_documents.corrections import revise
        from waybill_documents.faults import MappingFault

        with _alone:
            loaded = self.mapping_of(record)
            try:
                revised = revise(loaded, record, typed)
            except MappingFault as fault:
                raise Refused(msg("convert.review.other_version")) from fault
            return Revised(
                reading=revised.reading,
                changes=[change.to_json() for change in revised.changes],
                refused=[finding.to_json() for finding in revised.refused],
                xml=lambda: _xml(revised.reading),
            )

    def prepare(self, names: Iterable[str]) -> None:
        """Load these mappings before the first record needs one of them."""
        for name in names:
            if (found := self._load(name)) is not None:
                self._found[found.sha256] = found

    def mapping_of(self, record: Json) -> LoadedMapping:
        """The mapping that made the record. Refused if it is not known here in this version."""
        name, sha256 = record["mapping"]["name"], record["mapping"]["sha256"]
        found = self._found.get(sha256) or self._load(name, sha256)
        if found is None or (found.mapping.name, found.sha256) != (name, sha256):
            raise Refused(msg("convert.review.mapping_changed"))
        self._found[sha256] = found
        return found

    def _load(self, name: str, sha256: str | None = None) -> LoadedMapping | None:
        from waybill_documents.faults import MappingFault
        from waybill_documents.mapping.loader import load, shipped, shipped_as

        if self._files is None or sha256 != self._files.sha256:
            return shipped(name) if sha256 is None else shipped_as(name, sha256)
        try:
            return load(self._files)
        except MappingFault:
            return None


def _xml(reading: Reading) -> bytes:
    from waybill_documents.faults import DocumentRejected, MappingFault

    try:
        with _alone:
            return reading.xml(pretty=True)
    except DocumentRejected as fault:
        raise Unfit(fault.message, findings=[finding.to_json() for finding in fault.findings]) from fault
    except MappingFault as fault:
        raise Refused(msg("convert.review.xml_impossible")) from fault
