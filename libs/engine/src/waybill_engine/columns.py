"""Columns that many of the engine's tables have, with the defaults that the database gives them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Field

from waybill.db.column_types import ReadableTime


def time_column(*, nullable: bool = False) -> Any:
    if nullable:
        return Field(default=None, sa_type=ReadableTime)
    return Field(sa_type=ReadableTime, sa_column_kwargs={"server_default": sa.func.now()})


def int_column(default: int, kind: Any = sa.SmallInteger) -> Any:
    return Field(default=default, sa_type=kind, sa_column_kwargs={"server_default": str(default)})
