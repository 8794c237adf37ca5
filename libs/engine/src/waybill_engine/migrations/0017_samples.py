"""Samples of what waits and runs, and how many jobs ended in each minute

Revision: engine_0017, after engine_0016
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0017"
down_revision = "engine_0016"
branch_labels = None
depends_on = None

# A sample is a row here and one for each kind. Tenants and jobs are in the newest sample only: nothing of a tenant may
# stay once it is erased.
SAMPLES = """
CREATE TABLE samples (
    taken_at timestamptz PRIMARY KEY,
    workers  jsonb NOT NULL,
    breakers jsonb NOT NULL,
    limits   jsonb NOT NULL,
    tenants  jsonb,
    waiting_longest uuid[],
    cut_off  text[] NOT NULL
)
"""

KIND_SAMPLES = """
CREATE TABLE kind_samples (
    taken_at    timestamptz NOT NULL,
    kind        text NOT NULL,
    queued      integer NOT NULL,
    scheduled   integer NOT NULL,
    running     integer NOT NULL,
    dead_letter integer NOT NULL,
    oldest_runnable_at timestamptz,
    PRIMARY KEY (taken_at, kind)
)
"""

# Every worker adds to the row of the present minute. Half of each page stays free, so that these updates are HOT.
FINISHED = """
CREATE TABLE finished_by_minute (
    minute  timestamptz NOT NULL,
    kind    text NOT NULL,
    outcome text NOT NULL,
    jobs    bigint NOT NULL,
    seconds_queued  double precision NOT NULL,
    seconds_running double precision NOT NULL,
    PRIMARY KEY (minute, kind, outcome)
) WITH (fillfactor = 50)
"""


def upgrade() -> None:
    execute(SAMPLES, KIND_SAMPLES, FINISHED)
