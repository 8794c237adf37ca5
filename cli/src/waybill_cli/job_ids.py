"""Job ids as people type them: whole, or a beginning that only one job has.

The beginning of an id is the time it was made, so the primary key finds it at once. An ending would mean reading the
whole table; it is not accepted.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Annotated

import typer
from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.errors import Conflict, NotFound
from waybill_engine import queries

_HEX = re.compile(r"[0-9a-f]{8,32}")
_SHORTEST = 8
"""Digits. Shorter ones mean minutes of jobs, and a slip could hit the only one there is."""


@dataclass(frozen=True, slots=True)
class JobRef:
    """All ids that begin as typed; of a whole id, just that one."""

    typed: str
    first: uuid.UUID
    last: uuid.UUID

    async def resolve(self, session: AsyncSession) -> uuid.UUID:
        """The one job that is meant. A whole id is taken at its word; whoever uses it learns if it is missing."""
        if self.first == self.last:
            return self.first
        found = await queries.ids_between(session, self.first, self.last, limit=4)
        if not found:
            raise NotFound(f"There is no job whose id begins with {self.typed}.")
        if len(found) > 1:
            some = ", ".join(str(each) for each in found[:3]) + (", …" if len(found) > 3 else "")
            raise Conflict(f"Several jobs' ids begin with {self.typed}: {some}. Write more of the one you mean.")
        return found[0]


def job_ref(value: str | JobRef) -> JobRef:
    """Parses an id argument. Typer passes defaults through here too."""
    if isinstance(value, JobRef):
        return value
    digits = value.strip().lower().removeprefix("urn:uuid:").replace("-", "")
    if not _HEX.fullmatch(digits):
        raise typer.BadParameter(
            f"{value!r} is not a job id. It looks like 019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b; "
            f"its first {_SHORTEST} digits or more will do if no other job shares them."
        )
    return JobRef(value.strip(), uuid.UUID(hex=digits.ljust(32, "0")), uuid.UUID(hex=digits.ljust(32, "f")))


# Typer would show the name of the Python type beside it; the command's own text says what an ID is.
_argument = typer.Argument(parser=job_ref, metavar="ID", hidden=True)
JobArgument = Annotated[JobRef, _argument]
JobArguments = Annotated[list[JobRef], _argument]
OptionalJobArguments = Annotated[list[JobRef] | None, _argument]
