"""`waybill jobs show`: everything about one job: its facts, timeline and artefacts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.text import Text
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill import pipelines
from waybill.config import ProcessSettings, load
from waybill.console.database import with_database
from waybill.console.human_units import ago, duration, moment, size
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_json, print_line, styled
from waybill.db import Database, driver
from waybill.telemetry.trace_links import trace_url
from waybill_cli.job_ids import JobArgument
from waybill_cli.job_view import error_text, print_timeline, progress, state_text, waited_and_ran
from waybill_cli.records import artefact_record, happening_record, job_record
from waybill_engine import Artefact, Job, State, Worker, queries
from waybill_engine.queries import Happening

_SCOPES = {"active": "while it is active", "window": "for a window of time", "forever": "as long as it is kept"}


@dataclass(frozen=True, slots=True)
class _ShownJob:
    job: Job
    history: Sequence[Happening]
    artefacts: Sequence[Artefact]
    worker: Worker | None
    children: Mapping[State, int]
    facts: Mapping[str, str]
    """What pipelines know of it."""
    now: datetime

    @property
    def trace_url(self) -> str | None:
        return trace_url(self.job.id, self.job.traceparent, load(ProcessSettings))


def show(
    job: JobArgument,
    as_json: AsJson = False,
) -> None:
    """Show one job: facts, timeline and artefacts.

    ID is the job's id, or a beginning of it that no other job shares.
    """

    async def read(database: Database) -> _ShownJob:
        async with database.transaction() as session:
            found = await queries.get_job(session, await job.resolve(session))
            return _ShownJob(
                found,
                await queries.history(session, found),
                await queries.artefacts(session, found.id),
                await queries.worker_of(session, found),
                await queries.count_children(session, found.id) if found.children else {},
                await _known_to_pipelines(session, found.id),
                await queries.database_time(session),
            )

    seen = with_database(read)
    if as_json:
        print_json(_record(seen))
    else:
        _print(seen)


async def _known_to_pipelines(session: AsyncSession, job_id: uuid.UUID) -> dict[str, str]:
    connection, known = await driver(session), dict[str, str]()
    for job_facts in pipelines.brought("job_facts"):
        known |= await job_facts(connection, job_id)
    return known


def _record(seen: _ShownJob) -> dict[str, Any]:
    return job_record(seen.job) | {
        "worker": seen.worker.name if seen.worker else None,
        "lease_expires_at": seen.worker.lease_expires_at if seen.worker else None,
        "history": [happening_record(one) for one in seen.history],
        "artefacts": [artefact_record(one) for one in seen.artefacts],
        "trace_url": seen.trace_url,
        "facts": dict(seen.facts),
        "children_by_state": {state.value: seen.children.get(state, 0) for state in State},
    }


def _print(seen: _ShownJob) -> None:
    print_line(Text.assemble((str(seen.job.id), "bold")))
    print_facts(list(_facts(seen)))
    print_line()
    print_line(Text("Timeline", "bold"))
    print_timeline(seen.history)
    if seen.artefacts:
        print_line()
        print_line(Text("Artefacts", "bold"))
        print_table(
            [Column("NAME"), Column("TYPE", drop=1), Column("SIZE", right=True), Column("SHA-256", drop=2)],
            [
                (styled(one.name), styled(one.media_type), styled(size(one.bytes)), styled(one.sha256, "dim"))
                for one in seen.artefacts
            ],
            indent=2,
        )


def _facts(seen: _ShownJob) -> Iterator[tuple[str, Text]]:
    """The facts that apply to this job."""
    job, now = seen.job, seen.now

    def when(value: datetime) -> Text:
        return styled(f"{moment(value)} ({ago(value, now)})")

    yield "state", _state(job)
    if job.error_code:
        over = State(job.state).final
        yield "error" if over else "last error", styled(error_text(job), "red" if over else "")
        if job.error_detail:
            yield "", styled(_as_json(job.error_detail), "dim")
    yield "kind", styled(job.kind)
    for name, text in seen.facts.items():
        yield name, styled(text)
    yield "queue", styled(job.queue)
    yield "tenant", styled(job.tenant if job.owner == job.tenant else f"{job.tenant} (owner {job.owner})")
    yield "priority", styled(job.priority)
    yield "cost", styled(job.cost)
    yield "attempts", styled(f"{job.attempts} of {job.max_attempts}")
    if job.crashes or job.isolate:
        alone = ", runs alone" if job.isolate else ""
        yield "crashes", styled(f"{job.crashes} of {job.max_crashes}{alone}")
    yield "time limit", styled(f"{duration(job.time_limit)} a run")
    yield "created", when(job.created_at)
    if job.state == State.SCHEDULED and not job.pending_children and not job.parked_for:
        yield "due", when(job.run_at)
    if job.cancel_requested_at and job.state == State.RUNNING:
        yield "stop asked", when(job.cancel_requested_at)
    if job.finished_at:
        yield "finished", when(job.finished_at)
    waited, ran = waited_and_ran(seen.history)
    if waited is not None:
        yield "waited", styled(duration(waited))
    if ran is not None:
        yield "ran", styled(duration(ran))
    if seen.worker:
        held = f"{seen.worker.name}, lease until {moment(seen.worker.lease_expires_at)}"
        yield "worker", styled(held)
    if job.unique_key:
        yield "unique", styled(f"{job.unique_key} ({_SCOPES.get(job.unique_scope or '', job.unique_scope)})")
    if job.sequence_key:
        yield "sequence", styled(_sequence(job))
    if job.parent_id:
        yield "parent", styled(job.parent_id)
    if job.children:
        yield "children", styled(_children(seen))
    if trace := seen.trace_url or job.traceparent:
        yield "trace", styled(trace)
    yield "payload", styled(_as_json(job.payload))


def _sequence(job: Job) -> str:
    waits = ", waits for its turn" if job.parked_for else ""
    return f"{job.sequence_key} ({job.sequence_at_once} at once{waits})"


def _children(seen: _ShownJob) -> str:
    states = [f"{seen.children[state]:,} {state}" for state in State if state in seen.children]
    if purged := seen.job.children - sum(seen.children.values()):
        states.append(f"{purged:,} purged")
    waits = f"waits for {seen.job.pending_children:,} of " if seen.job.pending_children else ""
    return f"{waits}{seen.job.children:,}: {', '.join(states)}"


def _state(job: Job) -> Text:
    text = state_text(job.state)
    if (job.state == State.RUNNING or job.pending_children) and progress(job):
        text.append_text(styled(f"  {progress(job)}"))
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
