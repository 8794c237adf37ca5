"""The mappings that a request may name: the shipped ones and those in the operator's folder.

A name from a request is only looked up here; it never becomes part of a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from waybill_documents.catalogue import names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping, load, shipped
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
        if folder is not None:
            if not folder.is_dir():
                raise MappingFault(DocumentMessage("mapping.no_such_folder"), str(folder))
            for file in sorted(folder.glob("*.json")):
                self._add(file)

    def _add(self, file: Path) -> None:
        try:
            loaded = load(file.parent, file.name)
        except MappingFault as fault:
            raise MappingFault(
                DocumentMessage("mapping.in_file", where=fault.where, why=fault.says), str(file)
            ) from fault
        if loaded.mapping.name != file.stem:
            raise MappingFault(DocumentMessage("mapping.file_name", mapping=loaded.mapping.name), str(file))
        if file.stem in self._mappings:
            raise MappingFault(DocumentMessage("mapping.shipped_name"), str(file))
        self._mappings[file.stem] = loaded

    @property
    def names(self) -> list[str]:
        return sorted(self._mappings)

    def find(self, asked: str) -> str | None:
        """The name of the mapping that `NAME` or `NAME.json` means, if there is one."""
        name = name_in(asked)
        return name if name in self._mappings else None

    def __getitem__(self, name: str) -> LoadedMapping:
        return self._mappings[name]

    def to_json(self) -> list[dict[str, Any]]:
        """What a client needs to choose one."""
        return [
            {"name": name, "title": self._mappings[name].mapping.title, "sha256": self._mappings[name].sha256}
            for name in self.names
        ]
