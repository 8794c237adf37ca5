"""The handler the benchmark's worker runs: nothing, so that only the engine is measured."""

from __future__ import annotations

from typing import Any

from waybill.jobs import JobKind
from waybill_worker.context import JobContext
from waybill_worker.handling import handles

NOOP = JobKind("bench_noop")


@handles(NOOP)
async def noop(payload: dict[str, Any], job: JobContext) -> None:
    pass
