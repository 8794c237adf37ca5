"""Permissions to read and change conversions, and the visitors that the routes ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from waybill.web.visitors import Visitor, needs

READ = "convert:read"
WRITE = "convert:write"
MAPPINGS_READ = "mappings:read"
MAPPINGS_WRITE = "mappings:write"

Reader = Annotated[Visitor, Depends(needs(READ))]
Writer = Annotated[Visitor, Depends(needs(WRITE))]
MappingReader = Annotated[Visitor, Depends(needs(MAPPINGS_READ))]
MappingWriter = Annotated[Visitor, Depends(needs(MAPPINGS_READ, MAPPINGS_WRITE))]
Editor = Annotated[Visitor, Depends(needs(READ, WRITE))]
"""For changes whose answer shows what was there before."""
