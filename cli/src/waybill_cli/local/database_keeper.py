"""Keeps the embedded Postgres running, as `service_group` does with the services, and watches the disk it writes to.

It never blocks the event loop: Ctrl-C is heard while Postgres starts, however long its recovery takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

from waybill_cli.local.pauses import Pauses
from waybill_cli.local.postgres import EmbeddedPostgres, PostgresError
from waybill_cli.local.postgres.steps import PAUSE
from waybill_cli.local.screen import Screen

_LOOK_EVERY = 0.2
_LOOK_AT_DISK_EVERY = 10.0
_MB = 2**20


class DatabaseKeeper:
    """Starts `postgres` again whenever it has died; `min_free` is how many bytes its disk should have left."""

    def __init__(self, postgres: EmbeddedPostgres, screen: Screen, *, min_free: int) -> None:
        self._postgres = postgres
        self._screen = screen
        self._disk = DiskWatch(postgres.data.parent, screen, min_free=min_free)
        self._said: str | None = None

    async def keep(self, stop: asyncio.Event) -> None:
        """Keep it running until `stop` is set. Stopping it is left to whoever started it first."""
        clock = asyncio.get_running_loop().time
        pauses, up_since = Pauses(), clock()
        look_at_disk_at = clock()
        while not await _set_within(stop, _LOOK_EVERY):
            if clock() >= look_at_disk_at:
                self._disk.look()
                look_at_disk_at = clock() + _LOOK_AT_DISK_EVERY
            if self._postgres.running:
                continue
            pause = pauses.after(clock() - up_since)
            self._screen.bad(f"Postgres stopped by itself; starting it again in {pause:g} s.")
            if await _set_within(stop, pause):
                return
            await self._start(stop)
            up_since = clock()  # a start that took long is no calm time

    async def _start(self, stop: asyncio.Event) -> None:
        steps = self._postgres.starting()
        try:
            for _ in steps:
                if stop.is_set():
                    return
                await asyncio.sleep(PAUSE)
        except PostgresError as error:
            if str(error) != self._said:  # it can be long, and the next attempt may fail for the same reason
                self._screen.bad(str(error))
            self._said = str(error)
        else:
            self._said = None
            self._screen.say(f"Postgres runs again on 127.0.0.1:{self._postgres.port}.")
        finally:
            steps.close()


class DiskWatch:
    """Says once that a folder's disk has too little space, and once that it has enough again.

    The storage's disk is watched by the API, which refuses uploads. The database may lie on another one.
    """

    def __init__(self, folder: Path, screen: Screen, *, min_free: int) -> None:
        self._folder = folder
        self._screen = screen
        self._min_free = min_free
        self._low = False

    def look(self) -> None:
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(self._folder).free
            was_low, self._low = self._low, free < self._min_free
            if self._low and not was_low:
                self._screen.bad(
                    f"Only {free // _MB:,} MB are free on the disk of the database ({self._folder}). When it is full, "
                    "Postgres stops writing. Make space, or lower WAYBILL_STORAGE_MIN_FREE_MB to hear of it later."
                )
            elif was_low and not self._low:
                self._screen.good(f"The disk of the database has {free // _MB:,} MB free again.")


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout=seconds)
    return event.is_set()
