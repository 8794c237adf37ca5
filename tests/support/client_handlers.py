"""A handler that uses a client which all jobs of its worker share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from support.handlers import SOON, note_effect
from waybill_engine import JobContext, JobKind, handles

CALL = JobKind("call", retry=SOON)

_numbers = itertools.count(1)
log = structlog.get_logger()


@asynccontextmanager
async def client() -> AsyncIterator[str]:
    number = next(_numbers)
    log.info("client opened", number=number)
    yield f"client {number}"
    log.info("client closed", number=number)


@handles(CALL)
async def call(payload: dict[str, Any], job: JobContext) -> None:
    used = await job.use(client)
    async with job.complete() as session:
        await note_effect(session, job, used)
