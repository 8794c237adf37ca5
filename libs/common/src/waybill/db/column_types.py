"""Types of columns that SQLAlchemy does not know by itself."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect


class Xid8(sa.types.UserDefinedType[int]):
    """Postgres's 64-bit transaction id, which never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


# How a column of this type is recognised when a schema is read, as tests do that compare it with the models.
PGDialect.ischema_names["xid8"] = Xid8
