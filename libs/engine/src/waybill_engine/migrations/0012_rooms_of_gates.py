"""The function `waybill_rooms`: how many jobs caps and rates let through, and how many each lane may give

Revision: engine_0012, after engine_0011
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0012"
down_revision = "engine_0011"
branch_labels = None
depends_on = None

# A claim under caps and rates locks their rows, never waiting for another claim, and only then looks at what runs and
# what was paid. Each statement of a volatile function sees everything that was committed before it, so the function
# does in one round trip what a claim would otherwise do in several. See `waybill_engine.gate_requests`.
#
# Gates are numbered: the caps, the rates, then gates whose room the caller knows already. A room is NULL where another
# worker is claiming under the same cap or rate. A cap or rate that was lifted in the meantime limits nothing.
#
# A turn asks for one job of one lane, and there is a row for each gate in front of that lane (number 0: there is none).
# A turn that a gate refuses still uses up its place at the lane's other gates. So a claim may take fewer jobs than it
# could, never more, and the next one makes up for it. Lanes behind a closed gate ask for nothing. If all gates have
# room for all jobs, each lane gives what was planned without them.
#
# What runs is counted once for all caps, because looking it up for each cap would cost caps times workers: it is
# grouped together with the caps by tenant and kind, which needs no join.
ROOMS = """
CREATE FUNCTION waybill_rooms(
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
    room integer;
BEGIN
    rooms := '{}';
    waits := '{}';
    IF cardinality(cap_ids) > 0 THEN
        locked := ARRAY(SELECT id FROM caps WHERE id = ANY (cap_ids) ORDER BY id FOR UPDATE SKIP LOCKED);
    END IF;
    -- Most claims meet one cap at most. Counting for that one alone takes half the time.
    IF cardinality(cap_ids) = 1 THEN
        SELECT CASE WHEN cardinality(locked) > 0 THEN greatest(most - (
                   SELECT count(*) FROM workers, LATERAL (
                       (SELECT FROM jobs WHERE cap_kinds[1] IS NULL
                          AND lease_owner = workers.id AND jobs.tenant = cap_tenants[1])
                       UNION ALL
                       (SELECT FROM jobs WHERE cap_kinds[1] IS NOT NULL
                          AND lease_owner = workers.id AND jobs.kind = cap_kinds[1]
                          AND (cap_tenants[1] IS NULL OR jobs.tenant = cap_tenants[1]))
                   ) AS held WHERE workers.state IN ('active', 'draining')), 0)::integer END
          INTO room FROM caps WHERE caps.id = cap_ids[1];
        rooms := ARRAY[CASE WHEN FOUND THEN room ELSE no_limit END];
    ELSIF cardinality(cap_ids) > 0 THEN
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
