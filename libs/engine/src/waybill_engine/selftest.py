"""The handler of `selftest`, a job that shows that the engine works from end to end (`waybill selftest`)."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waybill.errors import Refused
from waybill_engine.context import JobContext
from waybill_engine.kinds import SELFTEST
from waybill_engine.registry import handles


class SelftestPayload(BaseModel):
    model_config = ConfigDict(extra="forbid")

    steps: int = Field(default=3, ge=1, le=1000)
    seconds_per_step: float = Field(default=0.2, ge=0, le=60)
    schedule: dict[str, Any] | None = None
    """The tick it is for, if a schedule made the job."""


@handles(SELFTEST)
async def selftest(payload: dict[str, Any], job: JobContext) -> None:
    try:
        plan = SelftestPayload.model_validate(payload)
    except ValidationError as error:
        raise Refused(f"The selftest's payload is invalid: {error.errors(include_url=False)[0]['msg']}") from error
    for step in range(plan.steps):
        await asyncio.sleep(plan.seconds_per_step)
        job.progress((step + 1) / plan.steps, f"step {step + 1} of {plan.steps}")
