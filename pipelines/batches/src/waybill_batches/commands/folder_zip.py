"""A folder as a ZIP: the same folder gives the same bytes, so that it is recognised when it is sent again."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from waybill.errors import Refused

_WHEN = (2000, 1, 1, 0, 0, 0)
_CHUNK = 1024 * 1024


def zip_folder(folder: Path, target: Path) -> int:
    """Write all files below a folder to a ZIP; how many they are. Hidden ones and links are left out."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in _files(folder):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _WHEN)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            with path.open("rb") as source, archive.open(info, "w", force_zip64=True) as entry:
                while chunk := source.read(_CHUNK):
                    entry.write(chunk)
            count += 1
    if count == 0:
        raise Refused(f"There are no files in {folder}.")
    return count


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path
