"""Parses in which a member of a ZIP, or a document of a bundle, says itself what it does to its parser."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from waybill.files import FileType
from waybill_documents.conversion import Answer
from waybill_gateway import document_tasks, extract_task, file_signature, unpack_task
from waybill_gateway.document_tasks import prepare

__all__ = ["as_told", "prepare"]

_MARK = b"!rude "


def rude(**what: Any) -> bytes:
    """A file that does something to its parser."""
    return _MARK + json.dumps(what).encode()


def as_told(call: Mapping[str, Any], answer: Path) -> dict[str, Any]:
    """Parse as usual, except for rude files."""
    vars(unpack_task)["sniff_opened"] = _sniff
    vars(extract_task)["convert_text"] = _convert_text
    return document_tasks.parse(call, answer)


def _sniff(file: BinaryIO) -> FileType:
    _obey(file.read(1000))
    file.seek(0)
    return file_signature.sniff_opened(file)


def _convert_text(content: bytes, clock: Callable[[], float]) -> Answer:
    _obey(content)
    return Answer(json.dumps(content.decode()).encode(), "application/json", {}, {})


def _obey(content: bytes) -> None:
    if not content.startswith(_MARK):
        return
    what = json.loads(content.removeprefix(_MARK))
    if "once" in what:
        if Path(what["once"]).exists():
            return
        Path(what["once"]).touch()
    if what["do"] == "crash":
        ctypes.string_at(0)
    if what["do"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what["do"] == "memory":
        raise MemoryError
    if what["do"] == "disk_full":
        raise OSError(28, "No space left on device")
    while True:  # hang
        pass
