"""The mappings a request may name: those that are shipped and those of the operator's folder, and no others.

A name from outside is only ever looked up here; no path is made from it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from waybill_documents.catalogue import names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping, load, shipped

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Catalogue:
    """Every mapping, loaded and thereby checked. Raises `MappingFault` for one that is wrong."""

    def __init__(self, folder: Path | None = None) -> None:
        self._mappings: dict[str, LoadedMapping] = {}
        for name in names():
            if (found := shipped(name)) is not None:
                self._mappings[name] = found
        if folder is not None:
            if not folder.is_dir():
                raise MappingFault("there is no such folder", str(folder))
            for file in sorted(folder.glob("*.json")):
                self._add(file)

    def _add(self, file: Path) -> None:
        try:
            loaded = load(file.parent, file.name)
        except MappingFault as fault:
            raise MappingFault(str(fault), str(file)) from fault
        if loaded.mapping.name != file.stem:
            raise MappingFault(f"the file must be called {loaded.mapping.name}.json", str(file))
        if file.stem in self._mappings:
            raise MappingFault("there is a shipped mapping of this name", str(file))
        self._mappings[file.stem] = loaded

    @property
    def names(self) -> list[str]:
        return sorted(self._mappings)

    def find(self, asked: str) -> str | None:
        """The name of the mapping that `NAME` or `NAME.json` means, if there is one."""
        name = asked.removesuffix(".json")
        return name if _NAME.fullmatch(name) and name in self._mappings else None

    def __getitem__(self, name: str) -> LoadedMapping:
        return self._mappings[name]

    def to_json(self) -> list[dict[str, Any]]:
        """What a client needs to choose one."""
        return [
            {"name": name, "title": self._mappings[name].mapping.title, "sha256": self._mappings[name].sha256}
            for name in self.names
        ]
