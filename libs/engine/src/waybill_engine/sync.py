"""Enqueue without an event loop: for Django, Flask, scripts, and everything else that talks to Postgres synchronously.

    with psycopg.connect(...) as connection:
        connection.execute("INSERT INTO orders ...")
        sync.enqueue(connection, NewJob(SEND_EMAIL, tenant="shop", payload={"to": customer}))

It calls the SQL function `waybill_enqueue` over the caller's own connection, of any DB-API driver for Postgres, and so
in the caller's transaction. The engine itself needs none of these drivers.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from waybill.errors import Conflict, Forbidden, NotFound, Refused
from waybill.telemetry import spans
from waybill_engine import job_traces
from waybill_engine.enqueue import Enqueued
from waybill_engine.new_job import NewJob, payload_json

# Everything is sent as text and cast here, because drivers differ in which types they know.
_ENQUEUE = """
SELECT CAST(id AS text), created
  FROM waybill_enqueue(
           CAST(%s AS text), CAST(%s AS text), CAST(%s AS jsonb),
           owner => CAST(%s AS text), queue => CAST(%s AS text), priority => CAST(%s AS integer),
           cost => CAST(%s AS bigint), delay => CAST(%s AS double precision), run_at => CAST(%s AS timestamptz),
           unique_key => CAST(%s AS text), unique_scope => CAST(%s AS text),
           unique_window => CAST(%s AS double precision), traceparent => CAST(%s AS text), job_id => CAST(%s AS uuid),
           max_attempts => CAST(%s AS integer), max_crashes => CAST(%s AS integer),
           time_limit => CAST(%s AS double precision),
           sequence_key => CAST(%s AS text), sequence_at_once => CAST(%s AS integer), tracestate => CAST(%s AS text))
"""

_MEANINGS = {"22023": Refused, "42501": Forbidden, "42704": NotFound, "40001": Conflict}
"""What the function's error codes mean."""


class Cursor(Protocol):
    def execute(self, statement: str, parameters: Sequence[Any], /) -> Any: ...
    def fetchone(self) -> Any: ...
    def close(self) -> Any: ...


class DbApiConnection(Protocol):
    """As much of a DB-API connection (PEP 249) as is needed here: psycopg, psycopg2, pg8000, Django's."""

    def cursor(self) -> Cursor: ...


def enqueue(connection: DbApiConnection, job: NewJob) -> Enqueued:
    """Enqueue one job in the caller's transaction. Workers hear of it when that commits.

    A priority above 0 needs an operator's grant. An error that Postgres raises ends the caller's transaction.
    """
    if spans.on():
        with job_traces.enqueuing([job]) as (job,):
            return _enqueue(connection, job)
    return _enqueue(connection, job)


def _enqueue(connection: DbApiConnection, job: NewJob) -> Enqueued:
    cursor = connection.cursor()
    try:
        cursor.execute(_ENQUEUE, _parameters(job))
        job_id, created = cursor.fetchone()
    except Exception as error:
        meaning = _MEANINGS.get(_sqlstate(error) or "")
        if meaning is None:
            raise
        raise meaning(_sentence(error)) from error
    finally:
        cursor.close()
    return Enqueued(uuid.UUID(job_id), created=created)


def _parameters(job: NewJob) -> tuple[str | None, ...]:
    unique = job.unique
    facts: tuple[object, ...] = (
        job.kind.name,
        job.tenant,
        payload_json(job),
        job.owner,
        job.queue or job.kind.queue,
        job.priority,
        job.cost,
        job.delay,
        job.run_at.isoformat() if job.run_at is not None else None,
        unique.key if unique else None,
        unique.scope.value if unique else None,
        unique.window if unique else None,
        job.traceparent,
        job.id,
        job.kind.retry.max_attempts,
        job.kind.max_crashes,
        job.kind.time_limit,
        job.sequence.key if job.sequence else None,
        job.sequence.at_once if job.sequence else None,
        job.tracestate,
    )
    return tuple(None if fact is None else str(fact) for fact in facts)


def _sqlstate(error: Exception) -> str | None:
    """The SQLSTATE of a driver's error: psycopg calls it sqlstate, psycopg2 pgcode, and pg8000 has it in a dict."""
    found = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if found is None and error.args and isinstance(error.args[0], dict):
        found = error.args[0].get("C")
    return found if isinstance(found, str) else None


def _sentence(error: Exception) -> str:
    """What Postgres said, with its hint."""
    diagnostics = getattr(error, "diag", None)
    fields = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    said = getattr(diagnostics, "message_primary", None) or fields.get("M") or str(error)
    hint = getattr(diagnostics, "message_hint", None) or fields.get("H")
    return f"{said} {hint}" if hint else str(said)
