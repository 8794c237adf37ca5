"""A process of the operating system, started so that its end tells how much memory it had used.

asyncio's own subprocesses do not tell, and it is what tells a parser that ran out of memory from one that crashed.
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
class End:
    """How a process ended."""

    code: int
    """The exit code, negative for a signal."""
    peak: int
    """The most memory it had in use, in bytes."""
    last_words: str
    """The end of what it wrote to its standard output and error: normally nothing."""


class Process:
    """Started at once. `keep` is the one descriptor of ours that it inherits, `folder` is for what it prints."""

    def __init__(
        self, command: Sequence[str], *, keep: int, environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[End] = self._loop.create_future()
        # A file and not a pipe, which would have to be emptied while everybody is busy.
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
            # A terminal's Ctrl-C is the service's to answer; and a group of its own can be killed as one.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def end(self) -> End | None:
        """None while it lives."""
        return self._ended.result() if self._ended.done() else None

    async def ended(self) -> End:
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """SIGKILL to it and to whatever it has started."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def forget_words(self) -> None:
        """Make room for more: a library that likes to talk must not fill the disk."""
        if not self._output.closed:
            self._output.truncate(0)

    def _wait(self) -> None:
        """Runs in a thread of its own."""
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)  # or it would be waited for once more
        # Kilobytes on Linux and the BSDs, bytes on macOS.
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        with self._output:
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - _LAST_WORDS))
            last_words = self._output.read(_LAST_WORDS).decode(errors="replace").strip()
        end = End(self._process.returncode, peak, last_words)
        with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits any longer
            self._loop.call_soon_threadsafe(self._tell, end)

    def _tell(self, end: End) -> None:
        if not self._ended.done():
            self._ended.set_result(end)
