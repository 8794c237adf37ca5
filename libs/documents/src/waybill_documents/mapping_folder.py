"""A folder of mappings: `NAME.json` or `NAME/mapping.json`, each with its schemas beside it.

It is read by services that only name mappings, too, so nothing is compiled here. What is ignored is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from waybill_documents.catalogue import FILE, Summary, names, summarised
from waybill_documents.faults import MappingFault
from waybill_documents.mapping_files import MappingFiles, gather
from waybill_documents.messages import DocumentMessage


@dataclass(frozen=True, slots=True)
class FolderMapping:
    summary: Summary
    files: MappingFiles
    path: Path


@dataclass(frozen=True, slots=True)
class MappingFolder:
    """What was found in a folder."""

    mappings: dict[str, FolderMapping] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)
    """What is neither a mapping nor a schema, in order."""


def read_folder(folder: Path | None) -> MappingFolder:
    """Read a folder; without one, there are no mappings.

    Raises `MappingFault` for a folder or a file that cannot be read, a file with another mapping's name, a mapping that
    is there twice, and one that is called like a shipped one.
    """
    found = MappingFolder()
    if folder is None:
        return found
    if not folder.is_dir():
        raise MappingFault(DocumentMessage("mapping.no_such_folder"), str(folder))
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue  # editors and Kubernetes keep files of their own there
        if entry.is_dir() and (entry / FILE).is_file():
            _add(found, _read(entry / FILE, entry.name))
        elif entry.is_file() and entry.suffix == ".json":
            _add(found, _read(entry, entry.stem))
        elif entry.suffix != ".xsd":
            found.ignored.append(entry)
    return found


def _read(path: Path, name: str) -> FolderMapping:
    try:
        files = gather(path.parent, path.name)
        summary = summarised(files.document.encode())
    except OSError as error:
        says = DocumentMessage("mapping.file_unreadable", name=path.name, detail=error.strerror)
        raise MappingFault(says, str(path)) from error
    except (ValueError, RecursionError) as error:
        raise MappingFault(DocumentMessage("mapping.no_mapping", detail=str(error)), str(path)) from error
    if summary.name != name:
        if path.name == FILE:
            raise MappingFault(DocumentMessage("mapping.folder_name", mapping=summary.name), str(path))
        raise MappingFault(DocumentMessage("mapping.file_name", mapping=summary.name), str(path))
    return FolderMapping(summary, files, path)


def _add(found: MappingFolder, mapping: FolderMapping) -> None:
    name = mapping.summary.name
    if name in names():
        raise MappingFault(DocumentMessage("mapping.shipped_name"), str(mapping.path))
    if name in found.mappings:
        raise MappingFault(
            DocumentMessage("mapping.there_already", path=found.mappings[name].path.name), str(mapping.path)
        )
    found.mappings[name] = mapping
