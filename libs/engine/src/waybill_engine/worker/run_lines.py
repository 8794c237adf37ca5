"""The log lines about runs that ended. A failure always has one; successes have as many as a process can afford."""

from __future__ import annotations

from typing import Any

import structlog

from waybill_engine.claim import ClaimedJob

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MOST_PER_SECOND = 50
"""A line costs about as much as an empty job. Conversions are slower than this; what is faster is told by metrics."""


class SuccessLines:
    """Logs runs that succeeded. A line says how many before it were not logged."""

    def __init__(self) -> None:
        self._second = 0
        self._left = MOST_PER_SECOND
        self._unsaid = 0

    def log(self, job: ClaimedJob, now: float) -> None:
        """Call it in the task of the job's run, whose lines name the job; `now` is by any clock."""
        second = int(now)
        if second != self._second:
            self._second, self._left = second, MOST_PER_SECOND
        if not self._left:
            self._unsaid += 1
            return
        self._left -= 1
        unsaid = {"not_logged": self._unsaid} if self._unsaid else {}
        self._unsaid = 0
        log.info("job_succeeded", **run_fields(job), **unsaid)


SUCCESSES = SuccessLines()
"""Of this process."""


def run_fields(job: ClaimedJob) -> dict[str, Any]:
    """What every line about the end of a run says."""
    return {"kind": job.kind, "attempt": job.attempts + 1, "seconds": round(job.took, 4)}
