"""`waybill audit verify`: whether the trail is whole, from its cut to its head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waybill.audit.checkpoints import ChainPlace
from waybill.audit.signatures import PublicKeys, Signer, Verifier
from waybill.audit.verification import Verdict
from waybill.audit.verification import verify as walk
from waybill.console.database import find_settings, with_database
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, duration
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, print_line, remark, remarks
from waybill.db import Database


def _place(typed: str | None) -> ChainPlace | None:
    if typed is None:
        return None
    position, _, digits = typed.partition(":")
    try:
        found = ChainPlace(int(position), bytes.fromhex(digits))
    except ValueError:
        found = ChainPlace(0, b"")
    if found.position < 1 or len(found.hash) != 32:
        raise typer.BadParameter("must be POSITION:HASH, as an earlier `waybill audit verify` printed it")
    return found


def verify(
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="POSITION:HASH",
            help="A head that an earlier run printed and that you kept outside of the database.",
        ),
    ] = None,
    keys: Annotated[
        list[Path] | None,
        typer.Option(
            "--key",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A public key that `waybill audit key` printed. The secret is then not needed. May be repeated: after"
            " the secret has changed, older checkpoints need the key from before.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Walk over the whole audit trail and check every hash. Exits with 1 if somebody has tampered with it.

    It finds events that were changed, removed, inserted or put in another order, and a beginning or an end that was cut
    off. Keep the head that it prints somewhere else, and --expect it the next time: this finds a trail that was made
    anew as a whole.
    """
    settings, _ = find_settings()
    expected = _place(expect)
    public = PublicKeys.read(file.read_bytes() for file in keys) if keys else None

    async def work(database: Database) -> Verdict:
        async with database.hot() as connection:
            verifier: Verifier = public or await Signer.of(settings, connection)
            with remarks().status("Starting…") as status:
                return await walk(
                    connection,
                    verifier,
                    expected=expected,
                    walked=lambda events: status.update(f"{counted(events, 'event')} so far…"),
                )

    verdict = with_database(work)
    head = f"{verdict.head.position}:{verdict.head.hash.hex()}"
    if as_json:
        print_json(
            {
                "whole": verdict.whole,
                "first": verdict.first,
                "head": head,
                "events": verdict.events,
                "unlinked": verdict.unlinked,
                "oldest_unlinked_seconds": verdict.oldest_unlinked,
                "secret_changes": verdict.secret_changes,
                "fault": None
                if verdict.fault is None
                else {
                    "position": verdict.fault.position,
                    "event_id": verdict.fault.event_id,
                    "says": verdict.fault.says,
                },
            }
        )
    else:
        _say(verdict, head)
    if not verdict.whole:
        raise typer.Exit(ExitCode.REFUSED)


def _say(verdict: Verdict, head: str) -> None:
    if verdict.fault is not None:
        complain(f"The audit trail is broken: {verdict.fault.says}")
        last = verdict.first + verdict.events - 1
        print_line(f"Whole: events {verdict.first} to {last}." if verdict.events else "Whole: nothing.")
    elif verdict.events:
        print_line(f"The audit trail is whole: events {verdict.first} to {verdict.head.position}.")
        print_line(f"Head: {head}")
    else:
        print_line("The audit trail is whole: it has no linked events.")
    if verdict.first > 1:
        remark(f"{counted(verdict.first - 1, 'older event')} were cut off behind a signed checkpoint.")
    for moment in verdict.secret_changes:
        remark(f"From {moment:%Y-%m-%d %H:%M} UTC on, another secret signs. Did you change it?", "yellow")
    if verdict.unlinked:
        age = duration(verdict.oldest_unlinked or 0.0)
        remark(f"{counted(verdict.unlinked, 'event')} not linked yet, the oldest since {age}.")
