"""`waybill jobs enqueue`: an operator starts a job of any kind that an installed pipeline has."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from waybill import audit
from waybill.console.database import with_database
from waybill.console.options import OPERATOR, AsJson, seconds
from waybill.console.terminal import print_json, print_line, remark
from waybill.db import Database, driver
from waybill.pipelines import brought
from waybill_engine import (
    Enqueued,
    JobKind,
    NewJob,
    SequenceKey,
    Unique,
    enqueued_elsewhere,
    kind_named,
    known_kinds,
    register_kinds,
)
from waybill_engine import enqueue as enqueue_job


def kind_names() -> list[str]:
    """The kinds of every installed pipeline and the engine's own."""
    _register_pipelines()
    return list(known_kinds())


def known_kind(name: str) -> JobKind:
    """The kind a person named; the error lists those there are."""
    _register_pipelines()
    return kind_named(name)


def _register_pipelines() -> None:
    for kinds in brought("kinds"):
        register_kinds(kinds)


def enqueue(
    kind: Annotated[str, typer.Argument(metavar="KIND", hidden=True, autocompletion=kind_names)],
    payload: Annotated[
        str, typer.Option("--payload", metavar="JSON", help="A JSON object; - reads it from standard input.")
    ] = "{}",
    tenant: Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Who it is for, who is billed.")] = OPERATOR,
    delay: Annotated[
        float, typer.Option("--delay", parser=seconds, metavar="DURATION", help="Start it after this time.")
    ] = 0.0,
    priority: Annotated[
        int, typer.Option("--priority", metavar="N", min=-32768, max=32767, help="Higher runs first.")
    ] = 0,
    unique: Annotated[
        str | None,
        typer.Option("--unique", metavar="KEY", help="Skip it while a job with this key is active."),
    ] = None,
    sequence: Annotated[
        str | None,
        typer.Option(
            "--sequence", metavar="KEY", help="Run it after earlier jobs of its tenant and kind with this key."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Enqueue a job, and print its id.

    KIND is the kind of job to run. An unknown kind is refused, with the list of known ones.
    """
    job = NewJob(
        kind=known_kind(kind),
        tenant=tenant_argument(tenant),
        payload=payload_argument(payload),
        delay=delay,
        priority=priority,
        unique=Unique(unique) if unique is not None else None,
        sequence=SequenceKey(sequence) if sequence is not None else None,
    )

    async def insert(database: Database) -> Enqueued:
        async with database.transaction() as session:
            done = await enqueue_job(session, job, as_operator=True)
            if done.created:
                detail = {"kind": kind, "priority": priority}
                await enqueued_elsewhere.add(await driver(session), kind, enqueued_elsewhere.BY_COMMAND)
                await audit.record(session, "job.enqueued", f"job:{done.id}", tenant=job.tenant, detail=detail)
            return done

    done = with_database(insert)
    if as_json:
        print_json({"id": done.id, "created": done.created})
        return
    print_line(str(done.id))
    if done.created:
        remark(f"Enqueued. Follow it with: waybill jobs show {done.id}")
    else:
        remark("Nothing enqueued: this job, with the same unique key, is active already.")


def tenant_argument(typed: str) -> str:
    if not typed.strip() or not typed.isprintable():
        raise typer.BadParameter("must be a name without control characters", param_hint="--tenant")
    return typed


def payload_argument(typed: str) -> dict[str, Any]:
    """The JSON object that a person typed or sent to standard input."""
    text = sys.stdin.read() if typed == "-" else typed

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise typer.BadParameter(f"not valid JSON: {error}", param_hint="--payload") from error
    if not isinstance(value, dict):
        raise typer.BadParameter('must be a JSON object, like {"steps": 3}', param_hint="--payload")
    return value
