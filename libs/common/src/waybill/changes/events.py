"""What happened in one pipeline, for all the others: the only way in which pipelines hear of each other.

`publish` calls the listener of every installed pipeline on the publisher's own transaction. What a listener writes or
enqueues commits with what happened, or not at all; so a listener must be quick, and must not call anything outside the
database.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import Connection, driver
from waybill.pipelines import installed, resolve

_TELL = "SELECT waybill_tell($1)"


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    """What happened, beginning with the pipeline: `convert.completed`."""
    tenant: str
    owner: str
    subject: uuid.UUID
    """What it happened to: the id of a job, or of a row of the pipeline's own."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Small, and plain JSON: a listener of another release may read it."""


Listener = Callable[[Connection, Event], Awaitable[None]]


async def publish(on: Connection | AsyncSession, event: Event) -> None:
    """Tell every pipeline's listener, in the caller's transaction, and wake whoever follows the owner's things."""
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    for listener in listeners():
        await listener(connection, event)
    await connection.execute(_TELL, event.owner)


@cache
def listeners() -> tuple[Listener, ...]:
    """The listeners of all installed pipelines."""
    return tuple(resolve(pipeline.listener) for pipeline in installed() if pipeline.listener is not None)
