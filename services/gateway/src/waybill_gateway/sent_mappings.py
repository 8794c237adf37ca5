"""Mappings that came with a document: a tenant's own, which the gateway does not keep.

They are read and compiled in the sandbox, because somebody outside wrote them. A parser remembers compiled ones by the
hash of their files, so that a tenant's next document does not compile its mapping again.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping, load
from waybill_documents.mapping_files import SCHEMA_NAME, MappingFiles
from waybill_documents.messages import DocumentMessage

MOST_SENT = 300
"""Mappings that may come with one document, or be named with it: a tenant's, the shared and the shipped ones."""
_MOST_REMEMBERED = 256
_MOST_REMEMBERED_BYTES = 16 * 1024 * 1024

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEMA = re.compile(SCHEMA_NAME)


class CompiledMappings:
    """The compiled mappings that were used last. What exceeds the limits is forgotten, the longest unused first."""

    def __init__(self, *, most: int = _MOST_REMEMBERED, most_bytes: int = _MOST_REMEMBERED_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._compiled: OrderedDict[str, tuple[LoadedMapping, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._compiled)

    def get(self, files: MappingFiles) -> LoadedMapping:
        """The mapping, compiled now or before. Raises `MappingFault` if it is invalid."""
        identity = files.identity
        if identity in self._compiled:
            self._compiled.move_to_end(identity)
            return self._compiled[identity][0]
        loaded = load(files)
        self._compiled[identity] = loaded, files.size
        self._bytes += files.size
        while len(self._compiled) > self._most or (self._bytes > self._most_bytes and len(self._compiled) > 1):
            _, (_, size) = self._compiled.popitem(last=False)
            self._bytes -= size
        return loaded


@dataclass(frozen=True, slots=True)
class SentMappings:
    """The mappings of one request, by name. Each is compiled when it is asked for."""

    files: dict[str, MappingFiles]
    own: dict[str, str]
    """Mappings of the gateway's own that were named with their hashes, and not sent."""
    compiled: CompiledMappings

    def get(self, name: str) -> LoadedMapping | None:
        """A mapping that was sent, or None. Raises `MappingFault` if it is not a valid mapping of this name."""
        files = self.files.get(name)
        if files is None:
            return None
        try:
            loaded = self.compiled.get(files)
        except MappingFault as fault:
            says = DocumentMessage("mapping.sent_wrong", name=name, where=fault.where, why=fault.says)
            raise MappingFault(says) from fault
        if loaded.mapping.name != name:
            raise MappingFault(DocumentMessage("mapping.sent_other_name", name=name, mapping=loaded.mapping.name))
        return loaded


def read_sent(content: bytes, compiled: CompiledMappings) -> SentMappings:
    """Read the `mappings` of a request. Raises `MappingFault` if they are not what a service of ours would send."""
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _malformed() from error
    if not isinstance(entries, list):
        raise _malformed()
    if len(entries) > MOST_SENT:
        raise MappingFault(DocumentMessage("mapping.sent_too_many", most=MOST_SENT))
    files: dict[str, MappingFiles] = {}
    own: dict[str, str] = {}
    for entry in entries:
        name, sha256, read = _entry(entry)
        if name in files or name in own:
            raise MappingFault(DocumentMessage("mapping.sent_twice", name=name))
        if read is None:
            own[name] = sha256
        else:
            files[name] = read
    return SentMappings(files, own, compiled)


def _entry(entry: Any) -> tuple[str, str, MappingFiles | None]:
    given = entry if isinstance(entry, dict) else {}
    name, sha256, document = (given.get(member) for member in ("name", "sha256", "document"))
    if not (_is(name, _NAME) and _is(sha256, _SHA256) and (isinstance(document, str) or "document" not in given)):
        raise _malformed()
    if not isinstance(document, str):
        return str(name), str(sha256), None
    schemas = given.get("schemas") or {}
    if not (isinstance(schemas, dict) and all(_is(key, _SCHEMA) and isinstance(schemas[key], str) for key in schemas)):
        raise _malformed()
    files = MappingFiles(document, schemas)
    try:
        is_same = files.size > 0 and files.sha256 == sha256
    except UnicodeEncodeError:  # JSON can have half a surrogate pair, which no file can
        raise _malformed() from None
    if not is_same:
        raise MappingFault(DocumentMessage("mapping.sent_changed", name=name))
    return str(name), str(sha256), files


def _is(given: Any, shape: re.Pattern[str]) -> bool:
    return isinstance(given, str) and shape.fullmatch(given) is not None


def _malformed() -> MappingFault:
    return MappingFault(DocumentMessage("mapping.sent_malformed"))
