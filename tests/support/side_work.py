"""Functions that tests run in side processes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import NoReturn

from waybill.errors import NotFound
from waybill.messages import msg


def whoami(text: str) -> tuple[int, str]:
    return os.getpid(), text


def grow(megabytes: int) -> tuple[int, int]:
    grow.kept = b"x" * (megabytes * 2**20)  # type: ignore[attr-defined]
    return os.getpid(), megabytes


def hang(started: Path) -> NoReturn:
    started.write_text(str(os.getpid()))
    threading.Event().wait()
    raise AssertionError


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise NotFound(msg("convert.no_job"))


def echo(*arguments: object) -> tuple[object, ...]:
    return arguments
