"""Lets SIGTERM end a program that is the first process of a container.

The kernel gives process 1 no default action: a signal it has no handler for is ignored. Without this, a stop would wait
for the whole grace period and then kill.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def heed_sigterm() -> None:
    """Call this first. A program that wants to end in another way replaces the handler later; elsewhere than in a
    container nothing changes.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, _end)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
