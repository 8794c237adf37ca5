"""Handlers that misbehave, each in one way. Tests load them together with the others as `BOTH`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from support.handlers import SOON, at_the_gate, note_effect
from waybill.errors import DocumentFault, RateLimited
from waybill_engine import JobContext, JobKind, RetryPolicy, handles

BOTH = "support.handlers,support.rude_handlers"

RUDE = JobKind("rude", retry=RetryPolicy(retries=1, base=0.05, jitter=0.0), time_limit=30.0)
SWALLOW = JobKind("swallow", retry=RetryPolicy(retries=0), time_limit=30.0)
POOLED = JobKind("pooled", retry=SOON, time_limit=20.0)
HURRIED = JobKind("hurried", retry=RetryPolicy(retries=0), time_limit=0.03)
AFTERWARDS = JobKind("afterwards", retry=SOON)
TOGETHER = JobKind("together", retry=RetryPolicy(retries=2, base=0.05, jitter=0.0))
IDLE = JobKind("idle", retry=RetryPolicy(retries=1, base=0.05, jitter=0.0))


class Panic(BaseException):
    """The error of a panicking Rust library (pyo3's PanicException is not an Exception)."""


class Unreadable:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_refuse, ())


def _refuse() -> None:
    raise RuntimeError("cannot be read here")


def _exit() -> None:
    sys.exit(2)


def _panic() -> None:
    raise Panic("called `Option::unwrap()` on a `None` value")


def echo(value: Any, *more: Any) -> Any:
    return value


def _slowly(folder: str) -> None:
    (Path(folder) / f"pool-{os.getpid()}").touch()
    time.sleep(4)


WAYS: dict[str, Callable[[JobContext], Any]] = {
    "progress_text": lambda job: job.progress("half"),  # type: ignore[arg-type]
    "retry_after_nan": lambda job: _raise(RateLimited(retry_after=float("nan"))),
    "retry_after_text": lambda job: _raise(RateLimited(retry_after="12")),  # type: ignore[arg-type]
    "exit": lambda job: sys.exit(2),
    "panic": lambda job: _panic(),
}


def _raise(error: BaseException) -> None:
    raise error


@handles(RUDE)
async def rude(payload: dict[str, Any], job: JobContext) -> None:
    if payload["way"] == "exit_in_pool":
        await job.run_blocking(_exit)
    elif payload["way"] == "panic_in_pool":
        await job.run_blocking(_panic)
    else:
        WAYS[payload["way"]](job)
        await asyncio.sleep(1)


@handles(SWALLOW)
async def swallow(payload: dict[str, Any], job: JobContext) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await at_the_gate(payload, job)


@handles(POOLED)
async def pooled(payload: dict[str, Any], job: JobContext) -> None:
    if "unreadable" in payload:
        await job.run_blocking(echo, Unreadable(), b"\x80" * payload["unreadable"])
    elif payload.get("slowly"):
        await job.run_blocking(_slowly, payload["slowly"])
    else:
        answer = await job.run_blocking(echo, payload["value"])
        async with job.complete() as session:
            await note_effect(session, job, str(answer))


@handles(HURRIED)
async def hurried(payload: dict[str, Any], job: JobContext) -> None:
    await job.run_blocking(echo, 1)


@handles(AFTERWARDS)
async def afterwards(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete():
        pass
    await asyncio.sleep(2)
    Path(payload["file"]).touch()


@handles(TOGETHER)
async def together(payload: dict[str, Any], job: JobContext) -> None:
    async def work() -> None:
        raise DocumentFault("page 3 is missing")

    async with asyncio.TaskGroup() as group:
        group.create_task(work())


@handles(IDLE)
async def idle(payload: dict[str, Any], job: JobContext) -> None:
    """Keeps a transaction open without using it, for longer than the server allows."""
    async with job.complete() as session:
        await session.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
        await asyncio.sleep(0.3)


BRITTLE = JobKind("brittle", retry=RetryPolicy(retries=0), time_limit=600.0)
LOCKED = JobKind("locked", retry=RetryPolicy(retries=3, base=0.05, jitter=0.0))


@handles(BRITTLE)
async def brittle(payload: dict[str, Any], job: JobContext) -> None:
    """Ignores its cancellation for ever."""
    (Path(payload["gate"]) / f"started-{job.id}-{job.claimed.token}").touch()
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@handles(LOCKED)
async def locked(payload: dict[str, Any], job: JobContext) -> None:
    await at_the_gate(payload, job)
    raise DocumentFault("no luck")


QUIET = JobKind("quiet", retry=SOON)


@handles(QUIET)
async def quiet(payload: dict[str, Any], job: JobContext) -> None:
    """Reports progress, waits at the gate and writes nothing, so its completion is buffered."""
    job.progress(0.25, "a quarter")
    await at_the_gate(payload, job)


BLOCK_LOOP = JobKind("block_loop", retry=SOON)


@handles(BLOCK_LOOP)
async def block_loop(payload: dict[str, Any], job: JobContext) -> None:
    """Keeps the event loop from doing anything else until a file is there."""
    (Path(payload["folder"]) / "blocked").touch()
    end = time.monotonic() + 20
    while not Path(payload["until"]).exists() and time.monotonic() < end:
        time.sleep(0.25)
