"""The style sheet, the scripts and the icon, at an address that changes with their content.

A pipeline's files are below its name. The version is part of the path, so that scripts can import each other by
relative names. We also answer for other versions, but tell browsers not to keep those answers: during a rollout, an old
page may ask a new replica.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from waybill.errors import NotFound
from waybill.pipelines import installed

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def _read(package: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    folder = Path(str(files(package))) / "static"
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in _TYPES:
            yield prefix + file.relative_to(folder).as_posix(), file.read_bytes()


# All files together have less than 200 KB. They are kept in memory, so that no request names a path on the disk.
_FILES = dict(_read("waybill.web"))
for _pipeline in installed():
    if _pipeline.pages is not None:
        _FILES |= dict(_read(_pipeline.pages, f"{_pipeline.name}/"))
_VERSION = hashlib.sha256(b"\0".join(name.encode() + b"\0" + data for name, data in _FILES.items())).hexdigest()[:12]
STATIC = f"/static/{_VERSION}"

router = APIRouter(include_in_schema=False)


@router.api_route("/static/{version}/{name:path}", methods=["GET", "HEAD"])
async def static(version: str, name: str) -> Response:
    data = _FILES.get(name)
    if data is None:
        raise NotFound()
    keep = "public, max-age=31536000, immutable" if version == _VERSION else "no-cache"
    return Response(data, media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": keep})
