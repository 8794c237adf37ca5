"""Whether a worker process is alive and ready, for Kubernetes. The thread that answers probes asks this.

Alive means that a restart would not help: the event loop turns, and the lease is renewed or the renewal is tried again
and again. An outage of the database is no reason to restart a worker; it is one not to be ready.
"""

from __future__ import annotations

import time
from typing import Protocol

from waybill.telemetry.loop_watch import LoopWatch

_STILL = 30.0
"""Seconds for which the loop may stand still. A handler that blocks it for so long has lost its lease, or soon will."""


class WorkerStanding(Protocol):
    """How a worker stands."""

    @property
    def registered(self) -> bool: ...
    @property
    def draining(self) -> bool: ...
    @property
    def busy(self) -> bool:
        """Whether a job runs here, or its end has yet to be written."""

    @property
    def database_is_well(self) -> bool: ...
    @property
    def renewal_tried_at(self) -> float:
        """When a renewal was last sent or tried, by `time.monotonic`."""


class Probes:
    def __init__(self, watch: LoopWatch, lease_ttl: float) -> None:
        self.worker: WorkerStanding | None = None
        """None while it starts."""
        self._watch = watch
        # A try may wait for a connection and then for the answer.
        self._untried = max(2 * lease_ttl, 60.0)

    def alive(self) -> str | None:
        """Why a restart is needed; None if none is."""
        if (still := self._watch.still_for) > _STILL:
            return f"the event loop has stood still for {still:.0f} s"
        if self.worker is not None and self.worker.registered:
            untried = time.monotonic() - self.worker.renewal_tried_at
            if untried > self._untried:
                return f"nobody has tried to renew the lease for {untried:.0f} s"
        return None

    def ready(self) -> str | None:
        """Why there is no work for it here; None if there is, or may be."""
        if self.worker is None or not self.worker.registered:
            return "it is starting"
        if self.worker.draining and not self.worker.busy:
            return "it is shutting down"
        if not self.worker.database_is_well:
            return "the database does not answer"
        return self.alive()
