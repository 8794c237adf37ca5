"""A service that has started is not stopped by the garbage collector."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import gc, time
import waybill_api.program
from waybill.collector import spare_the_living

def full_collection():
    began = time.process_time()
    gc.collect()
    return time.process_time() - began

before = min(full_collection() for _ in range(3))
spare_the_living()
after = min(full_collection() for _ in range(3))
assert after < before / 10, (before, after)
ring = []
ring.append(ring)
del ring
assert gc.collect(), "what is made later is still collected"
"""


def test_a_full_collection_no_longer_looks_at_what_lives_as_long_as_the_service() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
