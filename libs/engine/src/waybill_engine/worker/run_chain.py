"""Runs that follow one another in one task, because making a task costs more than an empty job.

A run leaves its task to the next one only if its handler never waited for anything and left the task as it found it
(`Run.leaves_its_task`). A run that waits has the task to itself from then on. So a handler meets nothing that another
one left behind, and whoever cancels a task stops one run.
"""

from __future__ import annotations

import time
import types
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waybill_engine.worker.run import Run


async def perform(run: Run) -> None:
    """A run, and all that follow it in this task."""
    await _in_turn(run)


@types.coroutine
def _in_turn(run: Run) -> Generator[Any, Any, None]:
    run.chain_began = time.monotonic()
    while True:
        steps = run.perform()
        try:
            awaited = steps.send(None)
        except StopIteration:
            if (following := run.next) is None:
                return
            run.next = None  # or the task's first run would keep all of them in memory
            run = following
        except BaseException:
            if run.next is not None:
                run.next.start()  # it must not be lost with this one
            raise
        else:
            break
    run.waits = True
    while True:
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 - a cancellation, above all; it is for the handler
            try:
                awaited = steps.throw(error)
            except StopIteration:
                return
        else:
            yield from steps
            return
