"""What a run was asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import Contestant


@dataclass(frozen=True)
class Options:
    jobs: int
    """Jobs per round of draining and enqueuing."""
    rounds: int
    samples: int
    """Single jobs picked up, in all rounds together."""
    rows: int
    """Rows of the big table, and jobs that churn."""
    seconds: float
    """How long idling is watched."""
    peers: tuple[Contestant, ...]
    peers_python: Path | None
    """The interpreter of the environment that the peers are installed in."""
    say: Callable[[str], None]
