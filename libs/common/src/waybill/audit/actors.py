"""Who is acting. It is known once per request or command, and everything below it finds it here.

An argument through every function between a request and the row it changes would be forgotten somewhere, and the event
would then be anonymous.
"""

from __future__ import annotations

import getpass
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.pg_text import storable

if TYPE_CHECKING:
    from waybill.audit.refusals import RefusalCounter


@dataclass(frozen=True, slots=True)
class Actor:
    name: str
    """`tenant:<name>` or `session:<id>` as the owner of things is called, `visitor` for somebody without a session,
    `command:<account>@<host>`, or `system:<part>`."""
    key_id: uuid.UUID | None = None
    session_id: uuid.UUID | None = None
    address: str | None = None
    request_id: uuid.UUID | None = None


SYSTEM = Actor("system")
"""A part of the product that nobody told to act: a worker, or a program that uses the engine as a library."""


@dataclass(slots=True)
class Trail:
    """Who acts in this request or command. A request learns that on its way, so the actor can be replaced."""

    actor: Actor
    refusals: RefusalCounter | None = None
    """Counts refusals. None where nobody can be refused, as in a command."""
    noted: bool = False
    """The refusal of this request is in the trail already, in more words than its status."""


_trail: ContextVar[Trail | None] = ContextVar("waybill_audit_trail", default=None)


def trail() -> Trail:
    """The trail of the current request or command."""
    return _trail.get() or Trail(SYSTEM)


@contextmanager
def acting_as(actor: Actor, refusals: RefusalCounter | None = None) -> Iterator[Trail]:
    """Everything in this block, and in tasks it starts, is done by this actor."""
    begun = Trail(actor, refusals)
    token = _trail.set(begun)
    try:
        yield begun
    finally:
        _trail.reset(token)


def command_actor() -> Actor:
    """Whoever runs a command: the account and the machine, as far as they are known."""
    try:
        account = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number that has no name
        account = "unknown"
    return Actor(storable(f"command:{account}@{socket.gethostname()}"))
