"""What the programs that read documents have in common: one file per line on standard input, one answer per line.

A reader lives as long as the measurement, as a parsing process does: starting Python and importing libraries is not
what is compared. Only the standard library is imported here: peers run in an environment without Waybill.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Reader = Callable[[str, str], int]
"""Reads the file (by the mapping of that name, where there is one) and says how much it found."""


def serve(readers: Mapping[str, Reader]) -> None:
    """Answer until there are no more questions: seconds, how much was found, and the memory used so far."""
    for line in sys.stdin:
        asked = json.loads(line)
        read = readers[asked["reader"]]
        gc.collect()
        resident = _memory("VmRSS")
        seconds = []
        for _ in range(asked["times"]):
            # Time of the processor: nobody waits for anything here, and another program's work is not ours to count.
            started = time.process_time()
            found = read(asked["file"], asked["mapping"])
            seconds.append(time.process_time() - started)
        answer = {"seconds": seconds, "found": found, "before_mb": resident, "peak_mb": _memory("VmHWM")}
        print(json.dumps(answer), flush=True)


def _memory(what: str) -> float:
    """In MB, by the kernel's own books. `ru_maxrss` would start at what the parent process used."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1000
    return 0.0
