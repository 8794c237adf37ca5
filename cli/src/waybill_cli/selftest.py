"""`waybill selftest`: runs one job through the whole engine and follows it to its end."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.human_units import duration
from waybill.console.options import OPERATOR, AsJson, seconds
from waybill.console.terminal import complain, print_json, print_line, remarks, safe, styled
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.pipelines import brought
from waybill_cli.job_view import error_text, print_timeline, progress, waited_and_ran
from waybill_cli.records import happening_record, job_record
from waybill_cli.wait import follow
from waybill_engine import Job, NewJob, State, control, enqueue, queries
from waybill_engine.kinds import SELFTEST
from waybill_engine.queries import Happening


@dataclass(frozen=True, slots=True)
class _Result:
    job: Job
    history: Sequence[Happening]
    reason: str | None
    """Why it did not pass; None if it passed."""


def selftest(
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, max=1000, help="Steps the job takes.")] = 5,
    seconds_per_step: Annotated[
        float, typer.Option("--seconds-per-step", metavar="SECONDS", min=0, max=10, help="How long each takes.")
    ] = 0.2,
    wait: Annotated[
        float, typer.Option("--wait", parser=seconds, metavar="SECONDS", help="Give up after this time.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Run a small job from end to end, and follow it.

    Prints how long it waited and ran or, if it does not finish in time, why. It also fails if services would not trust
    each other with these settings.
    """
    new = NewJob(kind=SELFTEST, tenant=OPERATOR, payload={"steps": steps, "seconds_per_step": seconds_per_step})

    async def run(database: Database) -> _Result:
        async with database.transaction() as session:
            await enqueue(session, new)
        job = await _watch(database, new.id, wait)
        reason = await _misconfigured() if job.state == State.SUCCEEDED else await _why_not(database, job, wait)
        if not State(job.state).final:
            await _clean_up(database, job.id)
        async with database.transaction() as session:
            job = await queries.get_job(session, new.id)
            return _Result(job, await queries.history(session, job), reason)

    result = with_database(run)
    waited, ran = waited_and_ran(result.history)
    if as_json:
        print_json(_record(result, waited, ran))
    else:
        print_line(str(result.job.id))
        print_timeline(result.history)
    if result.reason is not None:
        complain(f"The selftest did not pass. {result.reason}")
        raise typer.Exit(ExitCode.REFUSED)
    if not as_json:
        print_line(styled(f"Passed: waited {duration(waited or 0)}, ran {duration(ran or 0)}.", "green"))


def _record(result: _Result, waited: float | None, ran: float | None) -> dict[str, Any]:
    return {
        "passed": result.reason is None,
        "reason": result.reason,
        "waited_seconds": waited,
        "ran_seconds": ran,
        "job": job_record(result.job),
        "history": [happening_record(one) for one in result.history],
    }


async def _watch(database: Database, job_id: uuid.UUID, wait: float) -> Job:
    """Follow the job, with one changing line on a terminal and one line per change elsewhere."""
    console = remarks()
    with console.status("Enqueued…") as status:

        def tell(job: Job) -> None:
            line = f"{job.state} {progress(job)}".rstrip() if job.state == State.RUNNING else job.state
            if console.is_terminal:
                status.update(styled(line))
            else:
                console.print(safe(line), soft_wrap=True)

        return await follow(database, job_id, within=wait, on_change=tell)


async def _why_not(database: Database, job: Job, wait: float) -> str:
    if State(job.state).final:
        return f"The job ended as {job.state}: {error_text(job)}"
    late = f"The job did not finish within {duration(wait)}"
    if job.state == State.RUNNING:
        return f"{late}: it is still running. --wait gives it more time."
    if job.state == State.SCHEDULED:
        return f"{late}: it failed and waits for its next try. {error_text(job)}"
    async with database.transaction() as session:
        now = await queries.database_time(session)
        workers = [each for each in await queries.list_workers(session) if each.lease_expires_at > now]
        queue = next((each for each in await queries.queue_stats(session) if each.queue == job.queue), None)
    if queue is not None and queue.paused_at is not None:
        return f"{late}: queue {job.queue} is paused. Resume it with: waybill queue resume {job.queue}"
    if not workers:
        return f"{late}: no worker is running. `make up` runs one on this machine."
    if not any(job.kind in each.kinds and job.queue in each.queues for each in workers):
        return (
            f"{late}: none of the running workers serves kind {job.kind} in queue {job.queue}. See: waybill workers ls"
        )
    ahead = queue.counts.get(State.QUEUED, 1) - 1 if queue is not None else 0
    return f"{late}: it is still waiting, with {ahead} others in queue {job.queue}. --wait gives it more time."


async def _misconfigured() -> str | None:
    """What a person has to mend in the settings, as far as the pipelines can tell."""
    found = [await check() for check in brought("check")]
    return " ".join(sentence for sentence in found if sentence) or None


async def _clean_up(database: Database, job_id: uuid.UUID) -> None:
    """Cancel the job, so that it does not run when nobody looks any more."""
    try:
        async with database.hot() as connection:
            await control.cancel(connection, job_id, "The selftest gave up waiting")
    except WaybillError:
        return  # it has just ended
