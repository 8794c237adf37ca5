"""In whose name a job is read. An admin reads everybody's, and each look at a foreign one is in the audit trail."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends

from waybill_convert.permissions import Reader
from waybill_convert.web_context import Shared


async def _readable_owner(job_id: uuid.UUID, context: Shared, visitor: Reader) -> str:
    return await context.conversions.owner_to_read(visitor.principal, job_id)


ReadableOwner = Annotated[str, Depends(_readable_owner)]
"""The owner to read a job as. Routes that change something ask for the visitor's own."""
