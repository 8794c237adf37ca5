"""The options of a run."""

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
    """Single jobs to pick up, in all rounds together."""
    rows: int
    """Rows of the big table, and number of jobs that go through it."""
    seconds: float
    """How long idle workers are watched."""
    peers: tuple[Contestant, ...]
    peers_python: Path | None
    """The interpreter of the environment that the peers are installed in."""
    say: Callable[[str], None]
