"""A handler with a bug, whose error quotes its payload."""

from __future__ import annotations

from typing import Any

from waybill_engine import JobContext, JobKind, RetryPolicy, handles

CLUMSY = JobKind("clumsy", retry=RetryPolicy(retries=0))


@handles(CLUMSY)
async def clumsy(payload: dict[str, Any], _job: JobContext) -> None:
    int(payload["amount"])
