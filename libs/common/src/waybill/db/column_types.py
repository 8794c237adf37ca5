"""Types of columns that SQLAlchemy does not know by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect


class Xid8(sa.types.UserDefinedType[int]):
    """Postgres's 64-bit transaction id, which never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


_EARLIEST, _LATEST = "0002-01-01 00:00:00+00", "9999-12-30 00:00:00+00"


def readable_time(column: str) -> str:
    """A timestamp as Python can read it. `column` is an SQL expression.

    Postgres has infinity, and years before 1 and after 9999. Our own statements write only the first, but one row that
    somebody changed by hand must not take away a whole list. NULL, which `least` and `greatest` ignore, stays NULL.
    """
    return f"CASE WHEN {column} IS NOT NULL THEN least(greatest({column}, '{_EARLIEST}'), '{_LATEST}') END"


class ReadableTime(sa.types.TypeDecorator[datetime]):
    """A timestamp with time zone of which Python reads what `readable_time` says, and never fails."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def column_expression(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        earliest: sa.ColumnElement[Any] = sa.literal_column(f"'{_EARLIEST}'::timestamptz")
        latest: sa.ColumnElement[Any] = sa.literal_column(f"'{_LATEST}'::timestamptz")
        return sa.case((column.is_not(None), sa.func.least(sa.func.greatest(column, earliest), latest)))


# How a column of this type is recognised when a schema is read, as tests do that compare it with the models.
PGDialect.ischema_names["xid8"] = Xid8
