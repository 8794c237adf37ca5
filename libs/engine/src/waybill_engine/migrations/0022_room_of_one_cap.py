"""The function `waybill_rooms` asks a single cap in fewer steps

Revision: engine_0022, after engine_0021
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0022"
down_revision = "engine_0021"
branch_labels = None
depends_on = None

# What the function does is told in engine_0012. Under one cap, the lock now brings the cap's number with it, and the
# jobs are counted by the statement for caps of that sort alone. Each step still sees everything that was committed
# before it, so that what runs is counted after the lock. Releases before this one call it in the same way.
ROOMS = """
CREATE OR REPLACE FUNCTION waybill_rooms(
    cap_ids integer[], cap_tenants text[], cap_kinds text[], rate_ids integer[], known integer[],
    turns integer[], turn_lanes integer[], turn_gates integer[], planned integer[], jobs_wanted integer,
    OUT quotas integer[], OUT rooms integer[], OUT waits double precision[]
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    no_limit CONSTANT integer := 2147483647;
    locked integer[];
    counted_kinds text[] := CASE WHEN array_position(cap_kinds, NULL) IS NULL THEN cap_kinds ELSE '{}' END;
    rate_rooms integer[];
    at_once integer;
    taken bigint;
    room integer;
BEGIN
    rooms := '{}';
    waits := '{}';
    -- Most claims meet one cap at most, and asking for that one alone takes half the time.
    IF cardinality(cap_ids) = 1 THEN
        SELECT most INTO at_once FROM caps WHERE id = cap_ids[1] FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            IF cap_kinds[1] IS NULL THEN
                SELECT sum((SELECT count(*) FROM jobs WHERE lease_owner = workers.id AND tenant = cap_tenants[1]))
                  INTO taken FROM workers WHERE state IN ('active', 'draining');
            ELSE
                SELECT sum((SELECT count(*) FROM jobs WHERE lease_owner = workers.id AND kind = cap_kinds[1]
                               AND (cap_tenants[1] IS NULL OR tenant = cap_tenants[1])))
                  INTO taken FROM workers WHERE state IN ('active', 'draining');
            END IF;
            room := greatest(at_once - COALESCE(taken, 0), 0);
        ELSIF NOT EXISTS (SELECT FROM caps WHERE id = cap_ids[1]) THEN
            room := no_limit;
        END IF;
        rooms := ARRAY[room];
    ELSIF cardinality(cap_ids) > 0 THEN
        locked := ARRAY(SELECT id FROM caps WHERE id = ANY (cap_ids) ORDER BY id FOR UPDATE SKIP LOCKED);
        WITH running AS MATERIALIZED (
            SELECT held.tenant, held.kind, count(*) AS jobs
              FROM workers, LATERAL (
                       (SELECT tenant, kind FROM jobs
                         WHERE lease_owner = workers.id AND kind = ANY (counted_kinds)
                           AND cardinality(counted_kinds) > 0)
                       UNION ALL
                       (SELECT tenant, kind FROM jobs
                         WHERE lease_owner = workers.id AND cardinality(counted_kinds) = 0)
                   ) AS held
             WHERE workers.state IN ('active', 'draining')
             GROUP BY held.tenant, held.kind
        ), limiting AS (
            SELECT asked.tenant, asked.kind, asked.number, caps.most, caps.id = ANY (locked) AS free, 0 AS jobs
              FROM unnest(cap_ids, cap_tenants, cap_kinds) WITH ORDINALITY AS asked (id, tenant, kind, number)
                   LEFT JOIN caps ON caps.id = asked.id
            UNION ALL
            SELECT tenant, kind, NULL, NULL, NULL, jobs FROM running
            UNION ALL
            SELECT tenant, NULL, NULL, NULL, NULL, jobs FROM running
            UNION ALL
            SELECT NULL, kind, NULL, NULL, NULL, jobs FROM running
        ), counted AS (
            SELECT max(number) AS number,
                   CASE WHEN max(most) IS NULL THEN no_limit
                        WHEN bool_or(free) THEN greatest(max(most) - sum(jobs), 0)::integer END AS room
              FROM limiting GROUP BY tenant, kind HAVING max(number) IS NOT NULL
        )
        SELECT array_agg(room ORDER BY number) INTO rooms FROM counted;
    END IF;
    IF cardinality(rate_ids) > 0 THEN
        locked := ARRAY(SELECT id FROM rates WHERE id = ANY (rate_ids) ORDER BY id FOR UPDATE SKIP LOCKED);
        SELECT array_agg(CASE WHEN paced.id IS NULL THEN no_limit
                              WHEN paced.id = ANY (locked)
                              THEN CASE WHEN spare < 0 THEN 0 ELSE (spare / spacing + 1)::integer END END
                         ORDER BY number),
               array_agg(CASE WHEN spare < 0 THEN -spare / 1000000.0 END ORDER BY number)
          INTO rate_rooms, waits
          FROM unnest(rate_ids) WITH ORDINALITY AS asked (id, number)
               LEFT JOIN LATERAL (
                   SELECT id, spacing, (burst - 1) * spacing
                          - greatest(extract(epoch FROM paid_up_to - now()) * 1000000, 0)::bigint AS spare
                     FROM rates WHERE rates.id = asked.id AND most IS NOT NULL
               ) AS paced ON true;
        rooms := rooms || rate_rooms;
    END IF;
    IF cardinality(known) > 0 THEN
        rooms := rooms || known;
    END IF;
    IF jobs_wanted <= ALL (rooms) THEN
        quotas := planned;
        RETURN;
    END IF;
    WITH asked AS (
        SELECT turn, lane, gate,
               CASE WHEN gate = 0 THEN no_limit ELSE COALESCE(waybill_rooms.rooms[gate], 0) END AS room
          FROM unnest(turns, turn_lanes, turn_gates) AS one (turn, lane, gate)
    ), at_open_lanes AS (
        SELECT turn, lane, gate, room, min(room) OVER (PARTITION BY lane) > 0 AS open FROM asked
    ), in_place AS (
        SELECT turn, lane, row_number() OVER (PARTITION BY gate ORDER BY turn) <= room AS fits
          FROM at_open_lanes WHERE open
    ), admitted AS (
        SELECT turn, lane FROM in_place GROUP BY turn, lane HAVING bool_and(fits) ORDER BY turn LIMIT jobs_wanted
    ), by_lane AS (
        SELECT lane, sum(taken)::integer AS quota
          FROM (SELECT number AS lane, 0 AS taken FROM generate_series(1, cardinality(planned)) AS number
                UNION ALL
                SELECT lane, 1 FROM admitted) AS counted
         GROUP BY lane
    )
    SELECT array_agg(quota ORDER BY lane) INTO quotas FROM by_lane;
END $$
"""


def upgrade() -> None:
    execute(ROOMS)
