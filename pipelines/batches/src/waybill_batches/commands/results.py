"""Fetches the results of a batch, as a ZIP or unpacked into a folder."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from waybill.console.api_client import ApiClient, ApiFailed
from waybill.errors import UnsafePath
from waybill.files import write_atomic
from waybill.files.names import parts_of

_CHUNK = 1024 * 1024


def fetch(api: ApiClient, batch: dict[str, Any], output: Path) -> Path:
    """Write the results to a folder, or to a file if its name ends in `.zip`; where they are."""
    path = f"/api/batches/{batch['id']}/download"
    try:
        if output.suffix.lower() == ".zip":
            output.parent.mkdir(parents=True, exist_ok=True)
            api.save(path, output)
            return output
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".waybill-", dir=output) as folder:
            archive = Path(folder) / "results.zip"
            api.save(path, archive)
            _unpack(archive, output)
    except OSError as error:
        raise ApiFailed(f"{error.filename or output} cannot be written: {error.strerror or error}.") from error
    return output


def _unpack(archive: Path, folder: Path) -> None:
    """Each file is complete or absent. Nothing is written outside the folder, whatever the server sends."""
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            try:
                target = folder.joinpath(*parts_of(info.filename))
            except UnsafePath as error:
                raise ApiFailed(error.message) from error
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(info) as source:
                if not target.resolve().is_relative_to(folder.resolve()):
                    raise ApiFailed(f"{target} leads out of {folder}.")
                write_atomic(target, _chunks(source))


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk
