"""Lanes in the order of the database's clock; announcements that a relay may send

Revision: engine_0006, after engine_0005
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index, execute

revision = "engine_0006"
down_revision = "engine_0005"
branch_labels = None
depends_on = None

# Ids carry the clock of whoever enqueued the job; `created_at` is always the database's. Workers of release 0.1.0 go by
# this index, too: they sort a lane by id before they take its first jobs, which is slower and just as right.
LANE_ORDER = """
ON jobs (queue, kind, isolate, priority DESC, tenant, created_at, id) WHERE state = 'queued'
"""

OLD_ORDER = "DROP INDEX jobs_lanes"

# Workers of release 0.1.0, and those behind PgBouncer, hear nothing of what is announced now.
HEARS = "ALTER TABLE workers ADD COLUMN hears boolean NOT NULL DEFAULT false"

# What waits for the relay. Unlogged: nothing depends on announcements, and a crash of the server ends all who listen.
ANNOUNCEMENTS = """
CREATE UNLOGGED TABLE announcements (
    channel text NOT NULL,
    topic   text NOT NULL,
    since   bigint,
    jobs    bigint
)
-- Rows live for milliseconds.
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)
"""

# See `waybill_engine.relay` for the protocol and the locks. Of a lane, `topic` names it, `since` is the first new job's
# `created_at` in microseconds, and `jobs` how many there are.
ANNOUNCE = """
CREATE FUNCTION waybill_announce(channel text, topic text, since bigint DEFAULT NULL, jobs bigint DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF waybill_relay_is_on() AND pg_try_advisory_xact_lock_shared(8422, 3) AND waybill_relay_is_on() THEN
        INSERT INTO announcements VALUES (channel, topic, since, jobs);
        RETURN;
    END IF;
    IF NOT pg_try_advisory_xact_lock(8422, 1) THEN
        PERFORM pg_notify('waybill_relay', '');
    END IF;
    PERFORM pg_notify(channel, waybill_announcement(topic, since, jobs));
END $$
"""

RELAY_IS_ON = """
CREATE FUNCTION waybill_relay_is_on() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock_shared(8422, 2) THEN
        PERFORM pg_advisory_unlock_shared(8422, 2);
        RETURN false;
    END IF;
    RETURN true;
END $$
"""

ANNOUNCEMENT = """
CREATE FUNCTION waybill_announcement(topic text, since bigint, jobs bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE WHEN since IS NULL THEN topic ELSE json_build_array(topic::json, since, jobs)::text END
$$
"""


def upgrade() -> None:
    create_index("jobs_lane_order", LANE_ORDER)
    execute(OLD_ORDER, HEARS, ANNOUNCEMENTS, ANNOUNCEMENT, RELAY_IS_ON, ANNOUNCE)
