"""Packs files into upload requests: as few as possible, because the API limits their rate, and none too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waybill.console.upload_request import UploadFile

MOST_FILES = 20
MOST_BYTES = 190 * 1024 * 1024
"""The API accepts requests of up to 200 MB, including the form around the files."""


def requests_for(files: Sequence[UploadFile]) -> Iterator[list[UploadFile]]:
    """The files of each request, in their order: as many as one request may carry."""
    together: list[UploadFile] = []
    size = 0
    for file in files:
        if together and (len(together) == MOST_FILES or size + file.bytes > MOST_BYTES):
            yield together
            together, size = [], 0
        together.append(file)
        size += file.bytes
    if together:
        yield together
