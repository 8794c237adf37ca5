"""One program that runs beside the services, with its files in a folder of its own.

Its output goes to a file: it is about the program, not about Waybill. Nothing waits for it, and nothing stops because
it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from waybill_cli.local.pauses import Pauses
from waybill_cli.local.screen import Screen
from waybill_cli.local.tether import tethered

_LOOK_EVERY = 0.2
_PATIENCE = 5.0
"""Seconds that it may take to stop."""


class Observer:
    """Runs `command` with `environment`, and starts it again when it dies."""

    def __init__(
        self, name: str, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], screen: Screen
    ) -> None:
        self.name = name
        self.log = folder / f"{name.lower()}.log"
        self._command = command
        self._environment = environment
        self._screen = screen
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it. Call this from the main thread (see `tether`)."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                tethered(self._command, on_parent_death=signal.SIGKILL),
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us
            )

    async def keep(self, stop: asyncio.Event) -> None:
        """Start it again whenever it has ended, until `stop` is set. Stopping it is left to whoever started it."""
        clock = asyncio.get_running_loop().time
        pauses, up_since, said = Pauses(), clock(), False
        while not await _set_within(stop, _LOOK_EVERY):
            if self._process is None or self._process.poll() is None:
                continue
            pause = pauses.after(clock() - up_since)
            if not said:  # it may die again and again, and the services go on without it
                self._screen.bad(f"{self.name} ended by itself; its last lines are in {self.log}. It is started again.")
                said = True
            if await _set_within(stop, pause):
                return
            self.start()
            up_since = clock()

    def stop(self) -> None:
        """Ask it to stop, and kill it if it does not."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        try:
            process.terminate()
            process.wait(_PATIENCE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout=seconds)
    return event.is_set()
