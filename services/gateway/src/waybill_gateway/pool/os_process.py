"""A subprocess that reports how much memory it used when it ends.

asyncio's subprocesses do not report that, and we need it to tell a parser that ran out of memory from one that crashed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAST_WORDS = 4096


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended."""

    code: int
    """The exit code, negative for a signal."""
    peak: int
    """The most memory it had in use, in bytes."""
    last_words: str
    """The last part of its standard output and error; normally empty."""


class OsProcess:
    """Starts at once. It inherits only the descriptor `keep`; what it prints goes to a file in `folder`."""

    def __init__(
        self, command: Sequence[str], *, keep: int, environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[ProcessEnd] = self._loop.create_future()
        # A file, because somebody would have to keep reading from a pipe.
        self._output = tempfile.TemporaryFile("a+b", buffering=0, dir=folder)  # noqa: SIM115
        try:
            self._process = self._start(command, keep, environment)
        except OSError:
            self._output.close()
            raise
        threading.Thread(target=self._wait, name=f"wait-{self.pid}", daemon=True).start()

    def _start(self, command: Sequence[str], keep: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env=environment,
            pass_fds=(keep,),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            # Ctrl-C in a terminal must only reach the service, and a process group can be killed as a whole.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def end(self) -> ProcessEnd | None:
        """None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def ended(self) -> ProcessEnd:
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """Send SIGKILL to it and to everything it has started."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def forget_words(self) -> None:
        """Discard its output so far, so that a chatty library does not fill the disk."""
        if not self._output.closed:
            self._output.truncate(0)

    def _wait(self) -> None:
        """Wait for the end. This runs in its own thread."""
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
        # Kilobytes on Linux and the BSDs, bytes on macOS.
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        with self._output:
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - _LAST_WORDS))
            last_words = self._output.read(_LAST_WORDS).decode(errors="replace").strip()
        end = ProcessEnd(self._process.returncode, peak, last_words)
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits for it
            self._loop.call_soon_threadsafe(self._tell, end)

    def _tell(self, end: ProcessEnd) -> None:
        if not self._ended.done():
            self._ended.set_result(end)
