"""Runs janitors that are killed: `python -m support.janitor_victim URL FOLDER`, with a number per line of input.

For each number a child runs the janitor and kills itself with SIGKILL at that step, where every SQL statement (also
BEGIN and COMMIT) and every operation of the storage is a step. With 0 it is not killed. The answer is the exit code
and, if the child was not killed, the number of its steps. Children are forked, so that none has to start Python.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.janitor import janitor
from waybill.config import DatabaseUrl
from waybill.db import Database, hot_pool
from waybill.storage import LocalStorage

_steps = 0
_deadly = 0


def step(*_: Any) -> None:
    global _steps
    _steps += 1
    if _steps == _deadly:
        os.kill(os.getpid(), signal.SIGKILL)


class Watched(hot_pool._HotConnection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.add_query_logger(step)


class Touched(LocalStorage):
    async def delete_many(self, keys: Sequence[str]) -> None:
        for key in keys:
            step()
            await super().delete_many([key])
            step()


async def clean(url: str, folder: str) -> None:
    db = Database(DatabaseUrl(url))
    try:
        await janitor(db, Touched(Path(folder))).clean()
    finally:
        await db.close()


def main() -> None:
    global _deadly
    url, folder = sys.argv[1:]
    hot_pool._HotConnection = Watched  # type: ignore[misc]
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _deadly = int(line)
            asyncio.run(clean(url, folder))
            os.write(write, str(_steps).encode())
            os._exit(0)
        os.close(write)
        _, ended = os.waitpid(child, 0)
        steps = os.read(read, 20).decode()
        os.close(read)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)} {steps or 0}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
