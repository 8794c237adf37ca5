"""Whether the operator is alive and ready, for Kubernetes. The thread that answers probes asks this.

Alive means that a restart would not help. Ready means that the metrics API can answer: not that the database does,
since a replica that is not ready gets no requests, and then even discovery fails.
"""

from __future__ import annotations

from collections.abc import Callable

from waybill.telemetry.loop_watch import LoopWatch

_STILL = 30.0
"""Seconds for which the loop may stand still."""

PoolTrouble = Callable[[], str | None]


class OperatorProbes:
    def __init__(self, watch: LoopWatch) -> None:
        self._watch = watch
        self.parts: dict[str, PoolTrouble] = {"operator": lambda: "it is starting"}
        """What must be well for it to be ready."""

    def alive(self) -> str | None:
        """Why a restart is needed; None if none is."""
        if (still := self._watch.still_for) > _STILL:
            return f"the event loop has stood still for {still:.0f} s"
        return None

    def ready(self) -> str | None:
        found = [f"{name}: {trouble}" for name, ask in list(self.parts.items()) if (trouble := ask()) is not None]
        return "; ".join(found) or self.alive()
