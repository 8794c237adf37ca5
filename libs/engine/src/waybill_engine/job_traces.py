"""A job's life as a trace: who enqueued it, how long it waited, every run, and what brought it back.

Its row stores the span that enqueued it (`traceparent`, `tracestate`), and runs are parts of that by default. A child,
and a job that was enqueued together with many others, is a trace of its own, or the trace of a batch would have a
hundred thousand spans. Its stored `traceparent` then has the job's own id as trace, and `tracestate` says under our
name which span it links to. A job that nobody traced is such a trace, too, without a link.

The id of a run's span follows from job and lease token (`waybill.telemetry.trace_ids`). So whoever has the job
next can link to the run before, even if that run's worker was killed and its span never sent.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import asyncpg

from waybill.errors import Code
from waybill.telemetry import spans
from waybill.telemetry.spans import Link
from waybill.telemetry.trace_ids import SpanName, parse, run_span_id, run_trace_id, traceparent
from waybill_engine.new_job import NewJob

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LINKED = re.compile(r"(?:^|,)\s*waybill=([0-9a-f]{32})-([0-9a-f]{16})", re.ASCII)

_MESSAGE: Mapping[str, spans.Value] = {"messaging.system": "waybill"}
_PROCESS: Mapping[str, spans.Value] = {"messaging.operation.type": "process", "messaging.operation.name": "process"}
_SEND: Mapping[str, spans.Value] = {"messaging.operation.type": "send", "messaging.operation.name": "enqueue"}

_NOBODYS_FAULT = ("released", "cancelled")
"""Verdicts on jobs whose worker had been told to stop, or that had been cancelled."""

_PARENT = "SELECT traceparent FROM jobs WHERE id = $1"


async def parents_traceparent(connection: Connection, parent_id: uuid.UUID) -> str:
    """What the children of a job link to: the span that enqueued it, or else its first run."""
    stored: str | None = await connection.fetchval(_PARENT, parent_id)
    if parse(stored) is not None:
        return str(stored)
    return traceparent(parent_id.int, run_span_id(parent_id, 1), sampled=True)


@contextmanager
def enqueuing(jobs: Sequence[NewJob], *, parent: str | None = None, apart: bool = False) -> Iterator[list[NewJob]]:
    """The span of an enqueue, and the jobs as they are to be stored, each with the trace that it is in.

    Jobs with a `parent` to link to, and those that are to be kept `apart`, are traces of their own. A job that was
    given a `traceparent` keeps it.
    """
    first = jobs[0]
    names = {job.kind.name for job in jobs}
    # Jobs that have nothing in common but the statement, such as those of schedules, are not one trace.
    apart = apart or (len(jobs) > 1 and spans.current_ids() is None)
    attributes = {**_MESSAGE, **_SEND, "messaging.destination.name": first.queue or first.kind.queue}
    name = f"enqueue {first.kind.name}" if len(names) == 1 else "enqueue"
    if len(jobs) > 1:
        attributes["messaging.batch.message_count"] = len(jobs)
        with spans.span(name, kind="producer", attributes=attributes):
            yield _stamped(jobs, parent, apart)
        return
    attributes["messaging.message.id"] = str(first.id)
    with (
        spans.about_job(job_id=first.id, tenant=first.tenant, kind=first.kind.name),
        spans.span(name, kind="producer", attributes=attributes),
    ):
        yield _stamped(jobs, parent, apart)


def _stamped(jobs: Sequence[NewJob], parent: str | None, apart: bool) -> list[NewJob]:
    here = spans.carrier()
    where, state = here.get("traceparent"), here.get("tracestate")
    target = parse(parent or where)
    if target is None:
        return list(jobs)
    if parent is None and not apart:
        return [
            job if job.traceparent is not None else replace(job, traceparent=where, tracestate=state) for job in jobs
        ]
    linked = f"waybill={target.trace_id:032x}-{target.span_id:016x}"
    return [
        job
        if job.traceparent is not None
        else replace(
            job,
            traceparent=traceparent(job.id.int, target.span_id, sampled=target.sampled),
            tracestate=linked,
        )
        for job in jobs
    ]


@dataclass(slots=True)  # not frozen, which would double the time to make one for each run
class JobTrace:
    """Where a job's spans belong."""

    job_id: uuid.UUID
    stored: SpanName | None
    """The span that enqueued it. None if the job is a trace of its own."""
    state: str | None
    links: tuple[Link, ...]
    """What it links to, if it is a trace of its own."""

    @classmethod
    def of(cls, job_id: uuid.UUID, stored: str | None, state: str | None) -> JobTrace:
        found = parse(stored)
        if found is not None and found.trace_id != job_id.int:
            return cls(job_id, found, state, ())
        match = _LINKED.search(state) if state else None
        links = (Link(f"00-{match[1]}-{match[2]}-01", "parent"),) if match else ()
        return cls(job_id, None, None, links)

    @property
    def own_id(self) -> int | None:
        """Its trace, if it is one of its own."""
        return self.job_id.int if self.stored is None else None

    def joined(self) -> AbstractContextManager[object]:
        """Go on with the job's trace, if it is another's."""
        if self.stored is None:
            return nullcontext()
        carrier = {"traceparent": self.stored.traceparent}
        if self.state:
            carrier["tracestate"] = self.state
        return spans.joined(carrier)

    def run_ids(self, lease_token: int) -> tuple[int, int | None, bool | None]:
        """The ids of a run's span: its own, its trace if it is the first span of one, and whether that is sampled."""
        span_id = run_span_id(self.job_id, lease_token)
        if spans.runs_apart():
            return span_id, run_trace_id(self.job_id, lease_token), self.stored.sampled if self.stored else None
        return span_id, None if self.stored is not None else self.job_id.int, None

    def links_of_run(self, lease_token: int) -> list[Link]:
        """What a run links to: the run before, and what it comes from if it is not a part of that."""
        links = list(self.links)
        if self.stored is not None and spans.runs_apart():
            links.append(Link(self.stored.traceparent, "enqueued by"))
        if lease_token > 1:
            links.append(self.link_to_run(lease_token - 1))
        return links

    def link_to_run(self, lease_token: int) -> Link:
        span_id, trace_id, _ = self.run_ids(lease_token)
        if trace_id is None:
            trace_id = self.stored.trace_id if self.stored is not None else self.job_id.int
        return Link(traceparent(trace_id, span_id, sampled=True), "run before")


def process_attributes(job_id: str, queue: str) -> dict[str, spans.Value]:
    """The attributes of a run's span, as messaging systems name them."""
    return {**_MESSAGE, "messaging.destination.name": queue, "messaging.message.id": job_id, **_PROCESS}


def tell_retries(rows: Iterable[asyncpg.Record]) -> None:
    """People have jobs run again: for each a span in its trace, which links to its last run and to who asked."""
    asked = spans.carrier().get("traceparent")
    for row in rows if spans.on() else ():
        trace = JobTrace.of(row["id"], row["traceparent"], row["tracestate"])
        links = [trace.link_to_run(row["lease_token"])] if row["lease_token"] else []
        if asked is not None:
            links.append(Link(asked, "asked by"))
        attributes = {**_MESSAGE, "messaging.destination.name": row["queue"], "messaging.message.id": str(row["id"])}
        with (
            trace.joined(),
            spans.about_job(job_id=row["id"], tenant=row["tenant"], kind=row["kind"]),
            spans.span(
                f"retry {row['kind']}", kind="producer", attributes=attributes, links=links, trace_id=trace.own_id
            ),
        ):
            pass


def tell_rescues(rows: Iterable[asyncpg.Record], worker: str) -> None:
    """Jobs were taken back from a worker that is gone: the span of each lost run, which nobody else can send any more,
    and one of the rescue, which links to it."""
    now = time.time_ns()
    for row in rows if spans.on() else ():
        trace, token = JobTrace.of(row["id"], row["traceparent"], row["tracestate"]), row["lease_token"]
        span_id, trace_id, sampled = trace.run_ids(token)
        with (
            trace.joined(),
            spans.about_job(job_id=row["id"], tenant=row["tenant"], kind=row["kind"], attempt=row["attempt"]),
            spans.run_span(
                f"process {row['kind']}",
                span_id=span_id,
                trace_id=trace_id,
                sampled=sampled,
                attributes={**process_attributes(str(row["id"]), row["queue"]), "waybill.outcome": row["event"]},
                links=trace.links_of_run(token),
                begun=row["started_at"],
            ) as lost,
        ):
            if row["event"] not in _NOBODYS_FAULT:
                lost.fail(Code.WORKER_CRASHED)
            verdict = {"waybill.verdict": row["event"], "waybill.worker": worker}
            links = [trace.link_to_run(token)]
            lost.beside(f"rescue {row['kind']}", begun=now, ended=time.time_ns(), attributes=verdict, links=links)
