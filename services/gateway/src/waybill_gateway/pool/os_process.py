"""A subprocess that reports how much memory and CPU time it used when it ends.

asyncio's subprocesses do not report that, and we need it to tell the ways in which a parser can die apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waybill_gateway.sandbox.limits import Usage

_LAST_WORDS = 4096


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended."""

    code: int
    """The exit code, negative for a signal."""
    usage: Usage
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

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped it, such as with SIGSTOP. False if the system does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return fields[0] in ("T", "t")

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
        if hasattr(os, "waitid"):
            # While it is not reaped, its number belongs to no other group: what it has started can be killed safely.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
        with self._output:
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - _LAST_WORDS))
            last_words = self._output.read(_LAST_WORDS).decode(errors="replace").strip()
        end = ProcessEnd(self._process.returncode, Usage.of(usage), last_words)
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits for it
            self._loop.call_soon_threadsafe(self._tell, end)

    def _tell(self, end: ProcessEnd) -> None:
        if not self._ended.done():
            self._ended.set_result(end)
