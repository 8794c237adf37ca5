"""Handlers for the tests' workers. Real worker processes import them (`WAYBILL_WORKER_HANDLERS=support.handlers`).

The table `effects` has no constraints, so an effect that happens twice shows there. Handlers that wait do so at a gate:
they announce themselves with one file and continue when another appears, so that no test depends on timing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.errors import DocumentFault, GatewayUnavailable, GatewayUnreachable, RateLimited
from waybill_engine import JobContext, JobKind, NewJob, RetryPolicy, enqueue, handles

SOON = RetryPolicy(retries=3, base=0.05, jitter=0.05)

NOOP = JobKind("noop", retry=SOON)
EFFECT = JobKind("effect", retry=SOON)
CHAIN = JobKind("chain", retry=SOON)
GATED = JobKind("gated", retry=SOON)
PUBLISH = JobKind("publish", retry=SOON)
BURN = JobKind("burn", retry=SOON)
HANG = JobKind("hang", retry=RetryPolicy(retries=0), time_limit=0.5)
HANG_BLOCKING = JobKind("hang_blocking", retry=RetryPolicy(retries=0), time_limit=2.0)
SPIN = JobKind("spin", retry=RetryPolicy(retries=0))
STUBBORN = JobKind("stubborn", retry=RetryPolicy(retries=0), time_limit=0.5)
CRASH = JobKind("crash", retry=RetryPolicy(retries=9, base=0.05, jitter=0.0))
FAIL = JobKind("fail", retry=SOON)
EXIT = JobKind("exit", retry=RetryPolicy(retries=0))
COMPLETE_AND_RAISE = JobKind("complete_and_raise", retry=SOON)

CONVERT = JobKind("convert", retry=SOON, dependencies=("converter",))
CAPPED = JobKind("capped", retry=SOON, default_cap=lambda: int(os.environ.get("WAYBILL_TEST_CAPPED_AT", "0")))

EFFECTS = "CREATE TABLE public.effects (job_id uuid NOT NULL, lease_token int NOT NULL, note text)"
_INSERT = sa.text("INSERT INTO public.effects (job_id, lease_token, note) VALUES (:job_id, :token, :note)")


async def note_effect(session: AsyncSession, job: JobContext, note: str | None = None) -> None:
    await session.execute(_INSERT, {"job_id": job.id, "token": job.claimed.token, "note": note})


@handles(NOOP)
async def noop(payload: dict[str, Any], job: JobContext) -> None:
    pass


@handles(EFFECT)
async def effect(payload: dict[str, Any], job: JobContext) -> None:
    if seconds := payload.get("seconds"):
        await asyncio.sleep(seconds)
    async with job.complete() as session:
        await note_effect(session, job, payload.get("note"))


@handles(CHAIN)
async def chain(payload: dict[str, Any], job: JobContext) -> None:
    """Each link enqueues the next in the transaction that completes it."""
    async with job.complete() as session:
        await note_effect(session, job, f"link {payload['left']}")
        if payload["left"] > 0:
            await enqueue(session, NewJob(CHAIN, job.claimed.tenant, {"left": payload["left"] - 1}))


async def at_the_gate(payload: dict[str, Any], job: JobContext) -> None:
    """Announce the run, then wait for the gate to open."""
    gate = Path(payload["gate"])
    (gate / f"started-{job.id}-{job.claimed.token}").touch()
    while not (gate / "open").exists():
        await asyncio.sleep(0.01)


@handles(GATED)
async def gated(payload: dict[str, Any], job: JobContext) -> None:
    await at_the_gate(payload, job)
    async with job.complete() as session:
        await note_effect(session, job)


@handles(PUBLISH)
async def publish(payload: dict[str, Any], job: JobContext) -> None:
    await at_the_gate(payload, job)
    job.progress(0.5, f"token {job.claimed.token}")
    stored = await job.store("result.txt", f"by token {job.claimed.token}".encode())
    async with job.complete() as session:
        await job.publish(session, "result.txt", stored, "text/plain")


def burn_cpu(seconds: float) -> float:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return seconds


@handles(BURN)
async def burn(payload: dict[str, Any], job: JobContext) -> None:
    await job.run_blocking(burn_cpu, payload["seconds"])


@handles(HANG)
async def hang(payload: dict[str, Any], job: JobContext) -> None:
    await asyncio.Event().wait()


def hang_in_process(pid_file: str) -> None:
    Path(pid_file).write_text(str(os.getpid()))
    while True:
        pass


@handles(SPIN)
@handles(HANG_BLOCKING)
async def hang_blocking(payload: dict[str, Any], job: JobContext) -> None:
    await job.run_blocking(hang_in_process, payload["pid_file"])


@handles(STUBBORN)
async def stubborn(payload: dict[str, Any], job: JobContext) -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@handles(CRASH)
async def crash(payload: dict[str, Any], job: JobContext) -> None:
    # With a gate it first waits until other jobs run, so that the worker's crash ends several runs.
    if "gate" in payload and not job.claimed.isolated:
        await at_the_gate(payload, job)
    os.kill(os.getpid(), signal.SIGKILL)


@handles(EXIT)
async def exit_process(payload: dict[str, Any], job: JobContext) -> None:
    sys.exit(3)


@handles(COMPLETE_AND_RAISE)
async def complete_and_raise(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete() as session:
        await note_effect(session, job)
    raise RuntimeError("too late to fail")


@handles(FAIL)
async def fail(payload: dict[str, Any], job: JobContext) -> None:
    if payload.get("permanent"):
        raise DocumentFault("page 3 is missing")
    if (seconds := payload.get("retry_after")) is not None and job.claimed.token == 1:
        raise RateLimited("slow down", retry_after=seconds)
    if job.attempt <= payload.get("times", 0):
        raise GatewayUnavailable(f"attempt {job.attempt} fails")


@handles(CONVERT)
async def convert(payload: dict[str, Any], job: JobContext) -> None:
    """A job whose dependency fails while the file `down` exists, is away while `refused` does, and asks it to wait
    while `busy` does."""
    if "gate" in payload:
        await at_the_gate(payload, job)
    if seconds := payload.get("seconds"):
        await asyncio.sleep(seconds)
    if payload.get("unreadable"):
        raise DocumentFault("page 3 is missing")
    if "down" in payload and Path(payload["down"]).exists():
        raise GatewayUnavailable(dependency="converter")
    if "refused" in payload and Path(payload["refused"]).exists():
        raise GatewayUnreachable(dependency="converter")
    if "busy" in payload and Path(payload["busy"]).exists():
        raise GatewayUnavailable(dependency="converter", retry_after=payload["retry_after"])
    if payload.get("effect"):
        async with job.complete() as session:
            await note_effect(session, job)


@handles(CAPPED)
async def capped(payload: dict[str, Any], job: JobContext) -> None:
    pass
