"""The protocol of the programs that read documents: one request per line on standard input, one answer per line.

A reader runs as long as the measurement, like a parsing process, so that starting Python and importing libraries do not
count. Only the standard library is imported here, because peers run in an environment without Waybill.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Reader = Callable[[str, str], int]
"""Takes a file and the name of a mapping, if it needs one, and returns how much it found."""


def serve(readers: Mapping[str, Reader]) -> None:
    """Answer each request with the seconds it took, how much was found, and the memory used so far."""
    for line in sys.stdin:
        asked = json.loads(line)
        read = readers[asked["reader"]]
        gc.collect()
        resident = _memory("VmRSS")
        seconds = []
        for _ in range(asked["times"]):
            # Processor time, because readers never wait and the work of other programs must not count.
            started = time.process_time()
            found = read(asked["file"], asked["mapping"])
            seconds.append(time.process_time() - started)
        answer = {"seconds": seconds, "found": found, "before_mb": resident, "peak_mb": _memory("VmHWM")}
        print(json.dumps(answer), flush=True)


def _memory(what: str) -> float:
    """Megabytes as the kernel counts them. `ru_maxrss` would start at what the parent process used."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1000
    return 0.0
