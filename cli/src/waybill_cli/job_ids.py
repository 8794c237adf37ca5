"""Job ids as people type them: complete, or a beginning that only one job has.

An id begins with its creation time, so the primary key finds a beginning at once. An ending is not accepted, because
finding it would mean reading the whole table.
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
"""Digits. A shorter beginning covers minutes of jobs, so a typing mistake could match a wrong one."""


@dataclass(frozen=True, slots=True)
class JobRef:
    """The range of ids that begin as typed. For a complete id it is just that one."""

    typed: str
    first: uuid.UUID
    last: uuid.UUID

    async def resolve(self, session: AsyncSession) -> uuid.UUID:
        """The id of the one job in the range. A complete id is not looked up here; it may not exist."""
        if self.first == self.last:
            return self.first
        found = await queries.ids_between(session, self.first, self.last, limit=4)
        if not found:
            raise NotFound(f"There is no job whose id begins with {self.typed}.")
        if len(found) > 1:
            some = ", ".join(str(each) for each in found[:3]) + (", …" if len(found) > 3 else "")
            raise Conflict(f"Several jobs' ids begin with {self.typed}: {some}. Type more of the id.")
        return found[0]


def job_ref(value: str | JobRef) -> JobRef:
    """Parse an id argument. Typer passes defaults through here too."""
    if isinstance(value, JobRef):
        return value
    digits = value.strip().lower().removeprefix("urn:uuid:").replace("-", "")
    if not _HEX.fullmatch(digits):
        raise typer.BadParameter(
            f"{value!r} is not a job id. It looks like 019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b; "
            f"its first {_SHORTEST} digits or more are enough if no other job shares them."
        )
    return JobRef(value.strip(), uuid.UUID(hex=digits.ljust(32, "0")), uuid.UUID(hex=digits.ljust(32, "f")))


# It is hidden because Typer would show the Python type. The command's help explains ID.
_argument = typer.Argument(parser=job_ref, metavar="ID", hidden=True)
JobArgument = Annotated[JobRef, _argument]
JobArguments = Annotated[list[JobRef], _argument]
OptionalJobArguments = Annotated[list[JobRef] | None, _argument]
