"""Rates: how many jobs of a tenant, of a kind, or of both may start in some time

Revision: engine_0009, after engine_0008
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0009"
down_revision = "engine_0008"
branch_labels = None
depends_on = None

RATES = """
CREATE TABLE rates (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant  text,
    kind    text,
    most    integer,
    seconds double precision NOT NULL,
    burst   integer NOT NULL,
    spacing bigint NOT NULL,
    paid_up_to timestamptz NOT NULL DEFAULT 'epoch',
    decided boolean NOT NULL DEFAULT false,
    CONSTRAINT rates_of_somebody UNIQUE NULLS NOT DISTINCT (tenant, kind),
    CONSTRAINT rates_name_somebody CHECK (tenant IS NOT NULL OR kind IS NOT NULL),
    CONSTRAINT rates_let_through CHECK (most >= burst AND burst >= 1 AND seconds > 0 AND spacing >= 1)
)
"""


def upgrade() -> None:
    execute(RATES)
