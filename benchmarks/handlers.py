"""Waybill's handlers in the benchmark: one does nothing, so that only the engine counts; one reports its start."""

from __future__ import annotations

from typing import Any

from benchmarks.program import handler_started
from waybill_engine import JobKind
from waybill_engine.context import JobContext
from waybill_engine.registry import handles

NOOP = JobKind("bench_noop")
PICK_UP = JobKind("bench_pick_up")


@handles(NOOP)
async def noop(payload: dict[str, Any], job: JobContext) -> None:
    pass


@handles(PICK_UP)
async def pick_up(payload: dict[str, Any], job: JobContext) -> None:
    handler_started(payload["sample"])
