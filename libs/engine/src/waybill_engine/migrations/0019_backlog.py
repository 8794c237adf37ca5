"""The functions `waybill_backlog` and `waybill_workers_wanted`: how many workers the waiting jobs call for

Revision: engine_0019, after engine_0018
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index, execute

revision = "engine_0019"
down_revision = "engine_0018"
branch_labels = None
depends_on = None

# A kind that seldom runs is looked up in the last day without reading the minutes of the others.
MINUTES_OF_KIND = "ON finished_by_minute (kind, minute)"

# How many jobs of each kind wait in each queue, so that a look at the backlog need not count a long queue itself.
WAITING = "ALTER TABLE samples ADD COLUMN waiting jsonb"

# See `waybill_engine.backlog` for what it answers.
#
# The function brings planner settings along, because it is called on connections of all sorts. Nested loops are left
# only where there is no other way: into an index, row by row. Everything else is hashed, because a thousand tenants
# times five hundred caps is too much to compare one by one. Nothing is sorted.
#
# `few` is always a bounded read of an index. The steps:
#   pairs     queues and kinds in which jobs wait, read one by one from the index as in `samples`
#   counted   how many wait of each tenant. Of a long queue only the first are counted, and the newest sample says by
#             how much to multiply them (`weight`): what was not counted is taken to look like what was.
#   groups    waiting and running jobs by kind and tenant: the grain at which caps and rates apply
#   facts     of each kind, how long a job takes, and how many calls its breakers let through
#   sides     what caps and rates leave for each tenant and for each kind, in slots and in starts per second
#   judged    of each group, why it is held, if it is, and how many more slots its jobs ask for
#   factors   by how much the groups of a tenant shrink together, to fit its cap and its rate
#   by_kind   the slots of each kind, fitted to its cap and its rate
BACKLOG = """
CREATE FUNCTION waybill_backlog(
    queues text[] DEFAULT '{}', kinds text[] DEFAULT '{}', slots integer DEFAULT 10,
    drain_target double precision DEFAULT 60, default_seconds double precision DEFAULT 1, probes integer DEFAULT 2,
    OUT wanted integer, OUT queued bigint, OUT running bigint, OUT waiting bigint, OUT oldest timestamptz,
    OUT seconds_to_drain double precision, OUT held jsonb, OUT estimated boolean
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET enable_hashjoin = on SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    most_counted CONSTANT integer := 10000;
    most_looked_at CONSTANT integer := 1000;
    most_running CONSTANT integer := 100000;
    most_wanted CONSTANT integer := 1000000;
    longest CONSTANT double precision := 10 * 366 * 86400.0;
    enough CONSTANT integer := 10;
    every_queue boolean;
    every_kind boolean;
    pair_queues text[];
    pair_kinds text[];
    share integer;
    present bigint;
    called_for boolean;
    slots_wanted double precision;
    work double precision;
BEGIN
    queues := COALESCE(queues, '{}');
    kinds := COALESCE(kinds, '{}');
    IF (slots BETWEEN 1 AND 1000000) IS NOT TRUE THEN
        RAISE 'The slots of a worker must be between 1 and 1,000,000.' USING ERRCODE = '22023',
            HINT = 'They are its concurrency times its processes.';
    END IF;
    IF (drain_target > 0 AND drain_target <= longest) IS NOT TRUE THEN
        RAISE 'The drain target must be more than 0 seconds and at most ten years.' USING ERRCODE = '22023';
    END IF;
    IF (default_seconds >= 0 AND default_seconds <= longest) IS NOT TRUE THEN
        RAISE 'The seconds of an unknown kind must be between 0 and ten years.' USING ERRCODE = '22023';
    END IF;
    IF (probes BETWEEN 0 AND 1000000) IS NOT TRUE THEN
        RAISE 'The probes of a breaker must be between 0 and 1,000,000.' USING ERRCODE = '22023';
    END IF;
    every_queue := cardinality(queues) = 0;
    every_kind := cardinality(kinds) = 0;

    WITH RECURSIVE pairs AS (
        (SELECT queue, kind FROM jobs WHERE state = 'queued' ORDER BY queue, kind LIMIT 1)
         UNION ALL
        SELECT later.queue, later.kind
          FROM pairs, LATERAL (
                   SELECT queue, kind FROM jobs
                    WHERE state = 'queued' AND (jobs.queue, jobs.kind) > (pairs.queue, pairs.kind)
                    ORDER BY queue, kind LIMIT 1
               ) AS later
    )
    SELECT COALESCE(array_agg(queue), '{}'), COALESCE(array_agg(kind), '{}') INTO pair_queues, pair_kinds
      FROM pairs
     WHERE (every_queue OR queue = ANY (waybill_backlog.queues)) AND (every_kind OR kind = ANY (waybill_backlog.kinds));
    share := greatest(most_counted / greatest(cardinality(pair_queues), 1), most_looked_at / 10);

    SELECT COALESCE(sum(concurrency), 0) INTO present
      FROM workers
     WHERE workers.state = 'active' AND workers.lease_expires_at > now() AND NOT isolating
       AND (every_queue OR workers.queues && waybill_backlog.queues)
       AND (every_kind OR workers.kinds && waybill_backlog.kinds);

    WITH pairs AS MATERIALIZED (
        SELECT pair.queue, pair.kind,
               EXISTS (SELECT FROM queues WHERE queues.name = pair.queue AND queues.paused_at IS NOT NULL) AS paused
          FROM unnest(pair_queues, pair_kinds) AS pair (queue, kind)
    ), counted AS MATERIALIZED (
        SELECT pairs.queue, pairs.kind, pairs.paused, one.suspects, one.tenant, one.jobs, one.oldest
          FROM pairs, LATERAL (
                   SELECT false AS suspects, tenant, count(*)::integer AS jobs, min(run_at) AS oldest
                     FROM (SELECT tenant, run_at FROM jobs
                            WHERE state = 'queued' AND jobs.queue = pairs.queue AND jobs.kind = pairs.kind
                              AND isolate = false
                            ORDER BY queue, kind, isolate, priority DESC, tenant, owner, created_at, id
                            LIMIT share) AS few
                    GROUP BY tenant
                    UNION ALL
                   SELECT true, tenant, count(*)::integer, min(run_at)
                     FROM (SELECT tenant, run_at FROM jobs
                            WHERE state = 'queued' AND jobs.queue = pairs.queue AND jobs.kind = pairs.kind
                              AND isolate = true
                            ORDER BY queue, kind, isolate, priority DESC, tenant, owner, created_at, id
                            LIMIT most_looked_at) AS few
                    GROUP BY tenant
               ) AS one
    ), sampled AS MATERIALIZED (
        SELECT one ->> 0 AS queue, one ->> 1 AS kind, (one ->> 2)::float8 AS jobs
          FROM (SELECT samples.waiting FROM samples
                 WHERE taken_at > now() - interval '1 minute' AND taken_at <= now()
                 ORDER BY taken_at DESC LIMIT 1) AS newest, jsonb_array_elements(newest.waiting) AS one
    ), weights AS MATERIALIZED (
        SELECT long.queue, long.kind, greatest(COALESCE(sampled.jobs, 0) / long.jobs, 1) AS weight
          FROM (SELECT queue, kind, sum(jobs)::float8 AS jobs FROM counted WHERE NOT suspects
                 GROUP BY queue, kind HAVING sum(jobs) >= share) AS long
               LEFT JOIN sampled ON sampled.queue = long.queue AND sampled.kind = long.kind
    ), due AS MATERIALIZED (
        SELECT kind, tenant, run_at, isolate AS suspects,
               EXISTS (SELECT FROM queues WHERE queues.name = few.queue AND queues.paused_at IS NOT NULL) AS paused
          FROM (SELECT queue, kind, tenant, run_at, isolate FROM jobs
                 WHERE state = 'scheduled' AND run_at <= now()
                 ORDER BY run_at LIMIT most_looked_at) AS few
         WHERE (every_queue OR queue = ANY (waybill_backlog.queues))
           AND (every_kind OR kind = ANY (waybill_backlog.kinds))
    ), later AS MATERIALIZED (
        SELECT CASE WHEN run_at < 'infinity' THEN 'scheduled' WHEN pending_children > 0 THEN 'children'
                    ELSE 'sequence' END AS reason, count(*) AS jobs
          FROM ((SELECT queue, kind, run_at, pending_children FROM jobs
                  WHERE state = 'scheduled' AND run_at > now() AND run_at < 'infinity'
                  ORDER BY run_at LIMIT most_looked_at)
                UNION ALL
                (SELECT queue, kind, run_at, pending_children FROM jobs
                  WHERE state = 'scheduled' AND run_at = 'infinity'
                  ORDER BY run_at LIMIT most_looked_at)) AS few
         WHERE (every_queue OR queue = ANY (waybill_backlog.queues))
           AND (every_kind OR kind = ANY (waybill_backlog.kinds))
         GROUP BY 1
    ), groups AS MATERIALIZED (
        SELECT kind, tenant, sum(paused) AS paused, sum(suspects) AS suspects, sum(jobs) AS jobs,
               sum(weighted) AS weighted, sum(running) AS running, sum(mine) AS mine, min(oldest) AS oldest
          FROM (SELECT counted.kind, tenant,
                       CASE WHEN paused THEN jobs ELSE 0 END AS paused,
                       CASE WHEN NOT paused AND suspects THEN jobs ELSE 0 END AS suspects,
                       CASE WHEN NOT paused AND NOT suspects THEN jobs ELSE 0 END AS jobs,
                       CASE WHEN NOT paused AND NOT suspects THEN jobs * COALESCE(weight, 1) ELSE 0 END AS weighted,
                       0 AS running, 0 AS mine, CASE WHEN NOT paused THEN oldest END AS oldest
                  FROM counted
                       LEFT JOIN weights ON weights.queue = counted.queue AND weights.kind = counted.kind
                 UNION ALL
                SELECT kind, tenant, paused::integer, (NOT paused AND suspects)::integer,
                       (NOT paused AND NOT suspects)::integer, (NOT paused AND NOT suspects)::integer, 0, 0,
                       CASE WHEN NOT paused THEN run_at END
                  FROM due
                 UNION ALL
                SELECT kind, tenant, 0, 0, 0, 0, 1,
                       ((every_queue OR queue = ANY (waybill_backlog.queues))
                        AND (every_kind OR kind = ANY (waybill_backlog.kinds)))::integer, NULL
                  FROM (SELECT kind, tenant, queue FROM jobs WHERE lease_owner IS NOT NULL
                         ORDER BY lease_owner, kind, tenant LIMIT most_running) AS few) AS each
         GROUP BY kind, tenant
    ), facts AS MATERIALIZED (
        SELECT known.kind, COALESCE(ended.seconds, default_seconds) AS seconds, breaker.calls
          FROM (SELECT DISTINCT kind FROM groups) AS known, LATERAL (
                   SELECT CASE WHEN sum(jobs) FILTER (WHERE recent) >= enough
                               THEN sum(seconds_running) FILTER (WHERE recent) / sum(jobs) FILTER (WHERE recent)
                               WHEN sum(jobs) > 0 THEN sum(seconds_running) / sum(jobs) END AS seconds
                     FROM (SELECT jobs::float8, seconds_running, minute > now() - interval '15 minutes' AS recent
                             FROM finished_by_minute
                            WHERE finished_by_minute.kind = known.kind AND minute > now() - interval '1 day'
                              AND minute <= now()
                            ORDER BY finished_by_minute.kind, minute DESC LIMIT most_looked_at) AS few
               ) AS ended, LATERAL (
                   SELECT min(CASE WHEN breakers.cooldown_until > now() THEN 0
                                   WHEN breakers.state = 'closed' THEN NULL
                                   WHEN breakers.state = 'half_open' OR breakers.open_until <= now() THEN probes
                                   ELSE 0 END) AS calls
                     FROM kinds, unnest(COALESCE(kinds.dependencies, ARRAY[kinds.dependency])) AS needed (name)
                          JOIN breakers USING (name)
                    WHERE kinds.name = known.kind
               ) AS breaker
    ), paces AS MATERIALIZED (
        SELECT tenant, kind, (1e6 / spacing)::float8 AS rate,
               paid_up_to - (burst - 1) * spacing * interval '1 microsecond' > now() AS shut
          FROM rates WHERE rates.most IS NOT NULL
    ), of_tenants AS MATERIALIZED (
        SELECT one.tenant, caps.most AS cap, (caps.most - least(one.running, caps.most))::float8 AS room,
               paces.rate, paces.rate - least(one.starts, paces.rate) AS starts, paces.shut
          FROM (SELECT tenant, sum(running) AS running, COALESCE(sum(running / NULLIF(seconds, 0)), 0) AS starts
                  FROM groups JOIN facts USING (kind) GROUP BY tenant) AS one
               LEFT JOIN caps ON caps.tenant = one.tenant AND caps.kind IS NULL
               LEFT JOIN paces ON paces.tenant = one.tenant AND paces.kind IS NULL
    ), of_kinds AS MATERIALIZED (
        SELECT facts.kind, facts.seconds, facts.calls,
               caps.most AS cap, (caps.most - least(one.running, caps.most))::float8 AS room,
               paces.rate, paces.rate * facts.seconds - least(one.running, paces.rate * facts.seconds) AS room_of_rate,
               paces.shut
          FROM (SELECT kind, sum(running) AS running FROM groups GROUP BY kind) AS one
               JOIN facts USING (kind)
               LEFT JOIN caps ON caps.kind = facts.kind AND caps.tenant IS NULL
               LEFT JOIN paces ON paces.kind = facts.kind AND paces.tenant IS NULL
    ), judged AS MATERIALIZED (
        SELECT groups.kind, groups.tenant, groups.paused, groups.suspects, groups.jobs, groups.weighted, groups.mine,
               groups.oldest, of_kinds.seconds, of_kinds.calls,
               CASE WHEN of_kinds.calls IS NOT NULL THEN 'breaker'
                    WHEN least(caps.most - groups.running, of_tenants.room, of_kinds.room) <= 0 THEN 'cap'
                    WHEN of_tenants.shut OR of_kinds.shut OR paces.shut THEN 'rate' END AS reason,
               COALESCE(least(caps.most - groups.running, of_tenants.room, of_kinds.room) <= 0, false) AS capped,
               COALESCE(least(caps.most, of_tenants.cap, of_kinds.cap) = 0, false) OR of_kinds.calls IS NOT NULL
               AS stopped,
               caps.most AS cap, paces.rate,
               least(groups.jobs * of_kinds.seconds / drain_target,
                     caps.most - least(groups.running, caps.most),
                     paces.rate * of_kinds.seconds - least(groups.running, paces.rate * of_kinds.seconds),
                     of_tenants.room, of_tenants.starts * of_kinds.seconds,
                     of_kinds.room, of_kinds.room_of_rate, of_kinds.calls) AS more
          FROM groups
               JOIN of_kinds ON of_kinds.kind = groups.kind
               JOIN of_tenants ON of_tenants.tenant = groups.tenant
               LEFT JOIN caps ON caps.kind = groups.kind AND caps.tenant = groups.tenant
               LEFT JOIN paces ON paces.kind = groups.kind AND paces.tenant = groups.tenant
    ), factors AS MATERIALIZED (
        SELECT one.tenant, least(of_tenants.room / NULLIF(one.more, 0), of_tenants.starts / NULLIF(one.starts, 0), 1)
               AS factor, one.work / NULLIF(of_tenants.cap, 0) AS under_cap, one.jobs / of_tenants.rate AS under_rate
          FROM (SELECT tenant, sum(more) AS more, sum(more / NULLIF(seconds, 0)) AS starts,
                       sum(weighted) FILTER (WHERE NOT stopped) AS jobs,
                       sum(weighted * seconds) FILTER (WHERE NOT stopped) AS work
                  FROM judged GROUP BY tenant) AS one
               JOIN of_tenants USING (tenant)
    ), by_kind AS MATERIALIZED (
        SELECT least(COALESCE(one.more, 0), of_kinds.room, of_kinds.room_of_rate, of_kinds.calls) AS more,
               one.work / NULLIF(of_kinds.cap, 0) AS under_cap, one.jobs / of_kinds.rate AS under_rate
          FROM (SELECT judged.kind, sum(more * factor * weighted / NULLIF(judged.jobs, 0)) AS more,
                       sum(weighted) FILTER (WHERE NOT stopped) AS jobs,
                       sum(weighted * seconds) FILTER (WHERE NOT stopped) AS work
                  FROM judged JOIN factors USING (tenant) GROUP BY judged.kind) AS one
               JOIN of_kinds USING (kind)
    ), reasons AS MATERIALIZED (
        SELECT reason, jobs FROM later
         UNION ALL
        SELECT 'queue_paused', sum(paused) FROM judged
         UNION ALL
        SELECT 'isolated', sum(suspects) FROM judged WHERE reason IS NULL
         UNION ALL
        SELECT reason, round(sum(weighted + suspects))::bigint FROM judged WHERE reason IS NOT NULL GROUP BY reason
    ), totals AS MATERIALIZED (
        SELECT COALESCE(round(sum(weighted) FILTER (WHERE reason IS NULL)), 0)::bigint AS queued,
               COALESCE(sum(mine), 0)::bigint AS running,
               COALESCE(round(sum(weighted + suspects + paused)), 0)::bigint AS waiting,
               min(oldest) FILTER (WHERE reason IS NULL) AS oldest,
               COALESCE(bool_or(mine > 0 OR (jobs + suspects > 0 AND NOT capped AND calls IS DISTINCT FROM 0)), false)
               AS called_for,
               COALESCE(sum(weighted * seconds) FILTER (WHERE NOT stopped), 0) AS work,
               max(weighted * seconds / cap) FILTER (WHERE NOT stopped AND cap > 0) AS under_caps,
               max(weighted / rate) FILTER (WHERE NOT stopped) AS under_rates
          FROM judged
    )
    SELECT totals.queued, totals.running, totals.waiting, totals.oldest, totals.called_for, totals.work,
           (SELECT COALESCE(sum(more), 0) FROM by_kind),
           greatest(0, totals.work / NULLIF(present, 0), totals.under_caps, totals.under_rates,
                    (SELECT max(greatest(under_cap, under_rate)) FROM by_kind),
                    (SELECT max(greatest(under_cap, under_rate)) FROM factors)),
           (SELECT COALESCE(jsonb_object_agg(reason, jobs), '{}') FROM reasons WHERE jobs > 0),
           EXISTS (SELECT FROM weights)
      INTO queued, running, waiting, oldest, called_for, work, slots_wanted, seconds_to_drain, held, estimated
      FROM totals;
    IF present = 0 AND work > 0 THEN
        seconds_to_drain := NULL;
    END IF;

    -- Somebody must promote, tick and take turns, and a fleet of none does not.
    called_for := called_for
        OR EXISTS (SELECT FROM missed_turns WHERE every_kind OR kind = ANY (waybill_backlog.kinds))
        OR EXISTS (SELECT FROM schedules WHERE paused_at IS NULL AND next_at <= now()
                      AND (every_queue OR queue = ANY (waybill_backlog.queues))
                      AND (every_kind OR kind = ANY (waybill_backlog.kinds)));
    wanted := least(greatest(ceil(round((slots_wanted + running)::numeric, 6) / slots), called_for::integer),
                    most_wanted)::integer;
END $$
"""

WORKERS_WANTED = """
CREATE FUNCTION waybill_workers_wanted(
    queues text[] DEFAULT '{}', kinds text[] DEFAULT '{}', slots integer DEFAULT 10,
    drain_target double precision DEFAULT 60, default_seconds double precision DEFAULT 1, probes integer DEFAULT 2
) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT wanted FROM waybill_backlog(queues, kinds, slots, drain_target, default_seconds, probes)
$$
"""


def upgrade() -> None:
    create_index("finished_of_kind", MINUTES_OF_KIND)
    execute(WAITING, BACKLOG, WORKERS_WANTED)
