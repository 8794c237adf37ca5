"""Handlers of a family: one job fans out, its pieces end in every possible way, and one job sums up.

Workers load them beside `support.handlers`, whose table `effects` shows what happened, and how often.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from support.handlers import SOON, note_effect
from waybill.errors import DocumentFault, GatewayUnavailable
from waybill_engine import JobContext, JobKind, NewJob, enqueue_family, handles, queries

FAN_OUT = JobKind("fan_out", retry=SOON)
PIECE = JobKind("piece", retry=SOON)
SUM_UP = JobKind("sum_up", retry=SOON)


@handles(FAN_OUT)
async def fan_out(payload: dict[str, Any], job: JobContext) -> None:
    pieces = [
        NewJob(PIECE, job.claimed.tenant, {"number": number, "seconds": payload["seconds"]})
        for number in range(payload["pieces"])
    ]
    async with job.complete() as session:
        await enqueue_family(session, NewJob(SUM_UP, job.claimed.tenant), pieces)


@handles(PIECE)
async def piece(payload: dict[str, Any], job: JobContext) -> None:
    """Of ten pieces, one fails for good, one fails at first, four write rows and four just return."""
    await asyncio.sleep(payload["seconds"])
    number = payload["number"] % 10
    if number == 0:
        raise DocumentFault("this piece is broken")
    if number == 1 and job.attempt == 1:
        raise GatewayUnavailable("not at the first try")
    if number < 6:
        async with job.complete() as session:
            await note_effect(session, job)


@handles(SUM_UP)
async def sum_up(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete() as session:
        await note_effect(session, job, json.dumps(await queries.count_children(session, job.id)))
