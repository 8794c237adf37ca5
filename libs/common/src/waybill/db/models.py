"""Every table there is, in one place for the migrations to compare with."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import AutoString, SQLModel

import waybill.idempotency.models
import waybill.jobs.breaker_models
import waybill.jobs.models  # noqa: F401 - imported for the tables it declares

metadata = SQLModel.metadata


def compare_type(_context: Any, _column: Any, _model_column: Any, found: Any, declared: Any) -> bool | None:
    """For Alembic: `varchar` without a length, which SQLModel says, is `text`, which the migrations say."""
    both_text = isinstance(found, sa.Text) and isinstance(declared, AutoString) and str(declared) == "VARCHAR"
    return False if both_text else None
