"""How much of the processor a test uses, with everything that it starts: services, Postgres, a browser.

Seconds by the clock say little on a machine that does something else, too. It is counted when
`WAYBILL_TEST_PROCESSOR=1`, because looking through the processes takes a little itself.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

WANTED = os.environ.get("WAYBILL_TEST_PROCESSOR") == "1"

_PER_SECOND = os.sysconf("SC_CLK_TCK")


def used() -> float:
    """Seconds of this process, of all below it, and of those below that have ended.

    What ends after its own parent is lost, such as a server that somebody else started.
    """
    ticks, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):  # it may end meanwhile
            stat = Path(f"/proc/{pid}/stat").read_text()
            # User and system time, and those of its children that it has waited for.
            ticks += sum(map(int, stat[stat.rindex(")") + 2 :].split()[11:15]))
            for thread in Path(f"/proc/{pid}/task").iterdir():
                todo += map(int, (thread / "children").read_text().split())
    return ticks / _PER_SECOND
