"""The mappings that a request may name: the shipped ones and those in the operator's folder.

A name from a request is only looked up here; it never becomes part of a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from waybill_documents.candidates import Candidate, Candidates
from waybill_documents.catalogue import AUTO, names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping, load, shipped
from waybill_documents.mapping_folder import read_folder
from waybill_documents.messages import DocumentMessage

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def name_in(asked: str) -> str | None:
    """The name in `NAME` or `NAME.json`; None if no mapping could be called like that."""
    name = asked.removesuffix(".json")
    return name if _NAME.fullmatch(name) else None


class Mappings:
    """All mappings, loaded and checked. Raises `MappingFault` if one is invalid."""

    def __init__(self, folder: Path | None = None) -> None:
        self._mappings: dict[str, LoadedMapping] = {}
        for name in names():
            if (found := shipped(name)) is not None:
                self._mappings[name] = found
        read = read_folder(folder)
        self.ignored = read.ignored
        """Files and folders of the operator's that are no mappings."""
        for name, own in read.mappings.items():
            try:
                self._mappings[name] = load(own.files)
            except MappingFault as fault:
                says = DocumentMessage("mapping.in_file", where=fault.where, why=fault.says)
                raise MappingFault(says, str(own.path)) from fault
        self.candidates = Candidates(Candidate.of(loaded) for loaded in self._mappings.values())
        """All of them, for documents that shall choose."""

    @property
    def names(self) -> list[str]:
        return sorted(self._mappings)

    def find(self, asked: str) -> str | None:
        """The name of the mapping that `NAME` or `NAME.json` means, if there is one. `auto` means that one of all."""
        name = name_in(asked)
        return name if name == AUTO or name in self._mappings else None

    def __getitem__(self, name: str) -> LoadedMapping:
        return self._mappings[name]

    def to_json(self) -> list[dict[str, Any]]:
        """What a client needs to choose one."""
        return [
            {"name": name, "title": self._mappings[name].mapping.title, "sha256": self._mappings[name].sha256}
            for name in self.names
        ]
