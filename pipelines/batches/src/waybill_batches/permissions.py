"""Permissions to read and change batches, and the visitors that the routes ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from waybill.web.visitors import Visitor, needs

READ = "batches:read"
WRITE = "batches:write"

Reader = Annotated[Visitor, Depends(needs(READ))]
Writer = Annotated[Visitor, Depends(needs(READ, WRITE))]
"""Every change answers with the batch, so whoever may change may read."""
