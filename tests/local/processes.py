"""Running `waybill up` and servers as processes of their own, and looking at what is left of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from support.child_processes import dying_with_us
from support.patience import PATIENCE, wait_until
from waybill_cli.local.orphans import MARK

UP = (sys.executable, "-c", "from waybill_cli.main import main; main()", "up")
NOBODY = 65534


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process that `waybill up` or a server of this home started, wherever in the tree it is."""
    found = []
    note = home / "postgres" / "place"
    place = note.read_text().strip() if note.exists() else str(home)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            marked = process.environ().get(MARK) == str(home)
            if marked or (process.name() == "postgres" and place in process.cwd()):
                found.append(process)
    return found


class Up:
    """A running `waybill up`, and every line it has written so far."""

    def __init__(self, home: Path, environment: Mapping[str, str], command: Sequence[str] = UP, **run_as: int):
        self.home = home
        self.lines: list[str] = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            dying_with_us([*command]),
            env={**os.environ, "WAYBILL_HOME": str(home), **environment},
            cwd=home.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=run_as.get("user"),
            group=run_as.get("user"),
            extra_groups=() if run_as else None,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip())
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, part: str, within: float = PATIENCE, *, after: int = 0) -> str:
        """The first line with `part` in it, after so many others."""

        def found() -> str | None:
            return next((line for line in self.lines[after:] if part in line), None)

        with self._news:
            self._news.wait_for(lambda: found() or not self._reader.is_alive(), timeout=within)
            line = found()
        assert line is not None, f"no line with {part!r} in:\n{self.text}"
        return line

    def stop(self, how: signal.Signals) -> int:
        """Send the signal and wait for the end; the exit code."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        wait_until(lambda: self._end_children(), "the end of every process")
        self._reader.join(timeout=PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _end_children(self) -> bool:
        left = processes_of(self.home)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        return not left


class Stranger:
    """How to run our code as an ordinary user while the tests run as root."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder
        """A folder of that user's own, with a copy of our sources beside it."""

    @property
    def path(self) -> str:
        return str(self.folder.parent / "src")

    def can_import(self, module: str, path: str) -> bool:
        return self.run("-c", f"import {module}", path=path).returncode == 0

    def run(self, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *arguments],
            env={"PYTHONPATH": path, "PATH": os.defpath},
            cwd="/",
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            capture_output=True,
            text=True,
        )
