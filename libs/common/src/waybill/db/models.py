"""Every table there is, in one place for the migrations to compare with."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlmodel import AutoString, SQLModel

import waybill.idempotency.models
import waybill.janitor.models
import waybill.security.models  # noqa: F401 - imported for the tables it declares
from waybill_convert.models import Xid8

metadata = SQLModel.metadata

# How Alembic, comparing, reads a column of this type; SQLAlchemy does not know it by itself.
PGDialect.ischema_names["xid8"] = Xid8


def compare_type(_context: Any, _column: Any, _model_column: Any, found: Any, declared: Any) -> bool | None:
    """For Alembic: `varchar` without a length, which SQLModel says, is `text`, which the migrations say."""
    both_text = isinstance(found, sa.Text) and isinstance(declared, AutoString) and str(declared) == "VARCHAR"
    return False if both_text else None
