"""The files of a mapping, wherever they are: in a folder, in a package, or in memory on their way between services.

A mapping that travels is its document and the schemas that it needs. Nothing that it names is fetched from anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from waybill_documents.catalogue import FILE

SCHEMA_NAME = r"[A-Za-z0-9_.-]{1,100}\.xsd"
"""What the file of a schema may be called. It is never part of a path."""

_INCLUDED = re.compile(rf"""\bschemaLocation\s*=\s*["']({SCHEMA_NAME})["']""")
_PLAIN_NAME = re.compile(SCHEMA_NAME)


class MappingPlace(Protocol):
    """A folder or a file, as `Path` and `Traversable` are."""

    def __truediv__(self, child: str, /) -> MappingPlace: ...

    def is_file(self) -> bool: ...

    def read_bytes(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class MappingFiles:
    """A folder in memory: one mapping with its schemas."""

    document: str
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By the names of their files."""

    @property
    def sha256(self) -> str:
        """The mapping's hash, which is that of its document."""
        return hashlib.sha256(self.document.encode()).hexdigest()

    @property
    def identity(self) -> str:
        """A hash of all files. Two mappings with the same document may have different schemas."""
        whole = hashlib.sha256(self.sha256.encode())
        for name, text in sorted(self.schemas.items()):
            whole.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(text.encode()).digest())
        return whole.hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return len(self.document.encode()) + sum(len(text.encode()) for text in self.schemas.values())

    def __truediv__(self, child: str, /) -> MappingPlace:
        return _FileInMemory(child, self.document if child == FILE else self.schemas.get(child))

    def is_file(self) -> bool:
        return False

    def read_bytes(self) -> bytes:
        raise IsADirectoryError(21, "Is a directory")


def gather(place: MappingPlace, file: str = FILE) -> MappingFiles:
    """Read a mapping, the schema that it names, and what that includes, as far as they are there.

    Raises OSError or ValueError if the document cannot be read. Whether the mapping is valid, only the loader knows.
    """
    document = (place / file).read_bytes().decode()
    whole = json.loads(document)
    xml = whole.get("xml") if isinstance(whole, dict) else None
    wanted = [xml.get("xsd")] if isinstance(xml, dict) else []
    schemas: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        if not (isinstance(name, str) and _PLAIN_NAME.fullmatch(name)):
            continue
        if name not in schemas and (place / name).is_file():
            schemas[name] = (place / name).read_bytes().decode()
            wanted += _INCLUDED.findall(schemas[name])
    return MappingFiles(document, schemas)


@dataclass(frozen=True, slots=True)
class _FileInMemory:
    name: str
    text: str | None

    def __truediv__(self, child: str, /) -> MappingPlace:
        return _FileInMemory(f"{self.name}/{child}", None)

    def is_file(self) -> bool:
        return self.text is not None

    def read_bytes(self) -> bytes:
        if self.text is None:
            raise FileNotFoundError(2, "No such file or directory")
        return self.text.encode()
