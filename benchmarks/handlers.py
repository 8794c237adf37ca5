"""Waybill's handlers in the benchmark: one does nothing, so that only the engine counts; one
takes 10 ms; one reports its start."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.program import handler_started
from waybill_engine import JobKind
from waybill_engine.context import JobContext
from waybill_engine.registry import handles

NOOP = JobKind("bench_noop")
TEN_MS = JobKind("bench_ten_ms")
PICK_UP = JobKind("bench_pick_up")


@handles(NOOP)
async def noop(payload: dict[str, Any], job: JobContext) -> None:
    pass


@handles(TEN_MS)
async def ten_ms(payload: dict[str, Any], job: JobContext) -> None:
    await asyncio.sleep(0.01)


@handles(PICK_UP)
async def pick_up(payload: dict[str, Any], job: JobContext) -> None:
    handler_started(payload["sample"])
