"""`waybill breaker`: the circuit breakers of the dependencies that jobs need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago, counted, duration, moment
from waybill.console.options import AsJson, seconds
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import NotFound
from waybill_cli.records import breaker_happening_record, breaker_record
from waybill_engine import queries
from waybill_engine.breaker_control import (
    MOST_COUNTED,
    BreakerHappening,
    BreakerStatus,
    history,
    list_breakers,
    reset,
    trip,
)
from waybill_engine.breaker_models import BreakerState
from waybill_engine.kinds import is_name

app = typer.Typer(help="Operate circuit breakers: ls, show, trip, reset.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS = (
    Column("NAME"),
    Column("STATE"),
    Column("SINCE", drop=3),
    Column("NEXT", drop=1),
    Column("WAITING", right=True, drop=2),
    Column("FAILED", right=True, drop=4),
    Column("KINDS", drop=6, most=40),
    Column("REASON", drop=5, least=16),
)
_STYLES = {BreakerState.CLOSED: "green", BreakerState.OPEN: "bold red", BreakerState.HALF_OPEN: "yellow"}


def _dependency_name(value: str) -> str:
    if not is_name(value):
        raise typer.BadParameter(f"{value!r} cannot be a dependency. Use at most 63 lower case letters, digits and _")
    return value


Name = Annotated[str, typer.Argument(parser=_dependency_name, metavar="NAME", hidden=True)]


async def _now(database: Database) -> datetime:
    async with database.transaction() as session:
        return await queries.database_time(session)


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """List the dependencies of jobs, and the state of their breakers."""

    async def read(database: Database) -> tuple[list[BreakerStatus], datetime]:
        async with database.hot() as connection:
            return await list_breakers(connection), await _now(database)

    found, now = with_database(read)
    if as_json:
        print_json({"breakers": [breaker_record(each) for each in found]})
    elif not found:
        remark("No breakers: no kind that a worker has registered has a dependency.")
    else:
        print_table(_COLUMNS, [_row(each, now) for each in found])


def _row(breaker: BreakerStatus, now: datetime) -> list[Text]:
    return [
        styled(breaker.name),
        styled(breaker.state, _STYLES[breaker.state]),
        styled(ago(breaker.since, now)),
        styled(_next(breaker, now)),
        styled(_many(breaker.blocked)) if _is_limiting(breaker, now) else styled("-", "dim"),
        styled(f"{breaker.failures:,}/{breaker.calls:,}", "red" if breaker.failures else "dim"),
        styled(", ".join(breaker.kinds)),
        styled(breaker.reason or ""),
    ]


def _next(breaker: BreakerStatus, now: datetime) -> str:
    """What happens next."""
    if breaker.state is BreakerState.HALF_OPEN:
        return f"probes, {breaker.successes} succeeded"
    if breaker.state is BreakerState.CLOSED:
        until = breaker.cooldown_until
        return f"asked us to wait, calls {ago(until, now)}" if until is not None and until > now else ""
    if breaker.open_until is None:
        return "until reset"
    return f"probes {ago(breaker.open_until, now)}" if breaker.open_until > now else "probes now"


def _is_limiting(breaker: BreakerStatus, now: datetime) -> bool:
    """Whether jobs wait for it."""
    cooling = breaker.cooldown_until is not None and breaker.cooldown_until > now
    return breaker.state is not BreakerState.CLOSED or cooling


def _many(blocked: int) -> str:
    return f"{MOST_COUNTED:,}+" if blocked > MOST_COUNTED else f"{blocked:,}"


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one breaker and its history."""

    async def read(database: Database) -> tuple[BreakerStatus, list[BreakerHappening], datetime]:
        async with database.hot() as connection:
            return await _found(connection, name), await history(connection, name), await _now(database)

    breaker, happened, now = with_database(read)
    if as_json:
        print_json(breaker_record(breaker) | {"history": [breaker_happening_record(each) for each in happened]})
        return
    print_line(styled(breaker.name, "bold"))
    print_facts(_facts(breaker, now))
    if happened:
        print_line()
        print_line(Text("History, newest first", "bold"))
        _print_history(happened)


async def _found(connection: Connection, name: str) -> BreakerStatus:
    found = await list_breakers(connection, name)
    if not found:
        known = ", ".join(each.name for each in await list_breakers(connection)) or "none"
        raise NotFound(f"There is no dependency {name!r}. Known dependencies: {known}.")
    return found[0]


def _facts(breaker: BreakerStatus, now: datetime) -> list[tuple[str, Text]]:
    since = f" since {moment(breaker.since)} ({ago(breaker.since, now)})" if breaker.since else ""
    facts = [("state", Text.assemble(styled(breaker.state, _STYLES[breaker.state]), styled(since)))]
    if breaker.reason:
        facts.append(("reason", styled(breaker.reason)))
    if _is_limiting(breaker, now):
        facts.append(("next", styled(_next(breaker, now))))
        facts.append(("waiting", styled(f"{_many(breaker.blocked)} queued jobs")))
    facts.append(("kinds", styled(", ".join(breaker.kinds) or "none that a worker has registered")))
    facts.append(("calls", styled(f"{breaker.calls:,} in the last 5 min, {breaker.failures:,} failed")))
    return facts


def _print_history(happened: Sequence[BreakerHappening]) -> None:
    print_table(
        [Column(""), Column(""), Column("", least=20, wraps=True)],
        [
            (styled(moment(one.at), "dim"), styled(one.event.replace("_", " ")), styled(_describe(one)))
            for one in happened
        ],
        indent=2,
    )


def _describe(one: BreakerHappening) -> str:
    detail: dict[str, Any] = one.detail
    parts = [str(detail["reason"])] if detail.get("reason") else []
    if "until" in detail:
        until = detail["until"]
        parts.append(
            f"for {duration((datetime.fromisoformat(until) - one.at).total_seconds())}" if until else "until reset"
        )
    if "successes" in detail:
        parts.append(f"{counted(detail['successes'], 'probe')} succeeded")
    return " · ".join(parts)


@app.command("trip")
def trip_breaker(
    name: Name,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, for the history.")
    ] = "Tripped by an operator.",
    wait: Annotated[
        float | None,
        typer.Option(
            "--for", parser=seconds, metavar="TIME", help="When to send probes. Default: stay open until reset."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open a breaker by hand. Running jobs continue, but no job that needs the dependency starts."""
    if wait is not None and wait <= 0:
        raise typer.BadParameter("must be more than 0", param_hint="--for")

    async def hold(database: Database) -> tuple[BreakerStatus, list[str]]:
        async with database.hot() as connection:
            known = [each.name for each in await list_breakers(connection) if each.kinds]
            await trip(connection, name, reason, wait)
            return await _found(connection, name), known

    breaker, known = with_database(hold)
    if as_json:
        print_json(breaker_record(breaker) | {"known": name in known})
    else:
        then = f"for {duration(wait)}; then probes are sent" if wait else "until it is reset"
        print_line(f"The breaker of {name} is open {then}. Close it with: waybill breaker reset {name}")
    if name not in known:
        among = f"known are {', '.join(known)}" if known else "no worker has registered a dependency"
        remark(f"No kind depends on {name} so far; {among}.", "yellow")


@app.command("reset")
def reset_breaker(name: Name, as_json: AsJson = False) -> None:
    """Close a breaker by hand. Jobs that waited for it start at once, and its counts are reset."""

    async def close(database: Database) -> bool:
        async with database.hot() as connection:
            return await reset(connection, name)

    was_open = with_database(close)
    if as_json:
        print_json({"name": name, "state": BreakerState.CLOSED, "was_closed": not was_open})
    else:
        print_line(f"The breaker of {name} is closed." if was_open else f"The breaker of {name} was closed already.")
