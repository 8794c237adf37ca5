"""What is known about a pool's jobs at some moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PoolFigures:
    wanted: int
    queued: int
    running: int
    oldest: datetime | None
    """Since when the job has waited that has waited longest."""
    seconds_to_drain: float | None
    """With the workers that there are; None when there are none."""
    breakers: str
    at: datetime
    """By our clock."""
