"""A busy system in a database, made of rows: jobs in all states, workers, and an hour of samples and throughput."""

from __future__ import annotations

import uuid

from waybill.db.database import Connection
from waybill_engine import breaker, control
from waybill_engine.samples import take_if_due

_WORKERS = """
INSERT INTO workers (id, name, host, pid, version, queues, kinds, concurrency, state, started_at, last_seen_at,
                     lease_expires_at)
SELECT gen_random_uuid(), format('waybill-worker-%s:17', n), 'node-' || n % 7, 17, '0.2.0', '{default,webhooks}',
       '{convert_pdf,extract_file,process_batch,deliver_webhook}', 10,
       CASE WHEN n = 3 THEN 'draining' ELSE 'active' END,
       now() - n * interval '7 minutes', now() - n % 20 * interval '1 second',
       now() + CASE WHEN n = 2 THEN interval '-5 seconds' ELSE interval '1 hour' END
  FROM generate_series(1, $1::int) AS n
"""

# The ids are in the order of time, as real ones are.
_JOBS = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, attempts, max_attempts, created_at,
                  run_at, started_at, finished_at, lease_owner, lease_token, error_code, error_message)
SELECT (lpad(to_hex((extract(epoch FROM made) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 3, '0')
        || substr(md5(n::text || $1), 1, 12))::uuid,
       tenant, tenant, kind, CASE WHEN kind = 'deliver_webhook' THEN 'webhooks' ELSE 'default' END, $1, '{}', 60,
       CASE WHEN $1 = 'dead_letter' THEN 3 ELSE 0 END, 3, made, CASE WHEN $1 = 'scheduled' THEN now() + interval '1 h'
       ELSE made END, CASE WHEN $1 NOT IN ('queued', 'scheduled') THEN made + interval '20 seconds' END,
       CASE WHEN $1 NOT IN ('queued', 'scheduled', 'running') THEN made + interval '30 seconds' END,
       CASE WHEN $1 = 'running' THEN
           (SELECT id FROM workers ORDER BY id OFFSET n % (SELECT count(*) FROM workers) LIMIT 1) END, 1, code,
       CASE WHEN code IS NOT NULL THEN 'The converter answered with ' || code || ' (page ' || n % 9 || ').' END
  FROM (SELECT n, now() - $2 * interval '1 second' + n * interval '1 second' * $2 / $3 AS made,
               (ARRAY['acme', 'globex', 'initech', 'public', 'umbrella'])[1 + n % 5] AS tenant,
               (ARRAY['convert_pdf', 'extract_file', 'convert_pdf', 'deliver_webhook', 'process_batch'])[1 + n / 3 % 5]
               AS kind,
               CASE WHEN $1 IN ('failed', 'dead_letter')
               THEN (ARRAY['GW_5XX', 'GW_5XX', 'GW_TIMEOUT', 'WORKER_CRASHED'])[1 + n % 4] END AS code
          FROM generate_series(1, $3::int) AS n) AS each
"""

_SAMPLES = """
INSERT INTO kind_samples (taken_at, kind, queued, scheduled, running, dead_letter)
SELECT now() - n * interval '15 seconds', kind,
       (120 + 100 * sin(n / 20.0) + 60 * sin(n / 7.0) + n % 5)::int * share / 4, 9 * share,
       (20 + 5 * cos(n / 15.0))::int * share, 7
  FROM generate_series(1, 239) AS n, (VALUES ('convert_pdf', 4), ('extract_file', 2)) AS kinds (kind, share)
"""

_MINUTES = """
INSERT INTO finished_by_minute (minute, kind, outcome, jobs, seconds_queued, seconds_running)
SELECT date_trunc('minute', now()) - n * interval '1 minute', kind, outcome,
       greatest(1, share * (1 + 0.4 * sin(n / 6.0)))::bigint, share * (6 + 5 * sin(n / 9.0)), share * 2.4
  FROM generate_series(0, 59) AS n,
       (VALUES ('convert_pdf', 'succeeded', 180), ('convert_pdf', 'dead_letter', 6), ('extract_file', 'succeeded', 90),
               ('deliver_webhook', 'succeeded', 40), ('deliver_webhook', 'failed', 9)) AS ends (kind, outcome, share)
"""

_KINDS = """
INSERT INTO samples (taken_at, workers, breakers, limits, tenants, waiting_longest, cut_off)
SELECT now() - n * interval '15 seconds', '{}', '{}', '[]', '[]', '{}', '{}' FROM generate_series(0, 239) AS n;
INSERT INTO kind_samples (taken_at, kind, queued, scheduled, running, dead_letter)
SELECT now() - n * interval '15 seconds', 'kind_' || k, 1 + k % 7, 0, 1, (k = 777)::int
  FROM generate_series(0, 239) AS n, generate_series(1, 1000) AS k;
INSERT INTO finished_by_minute (minute, kind, outcome, jobs, seconds_queued, seconds_running)
SELECT date_trunc('minute', now()) - n * interval '1 minute', 'kind_' || k, 'succeeded', 5, 1, 1
  FROM generate_series(0, 59) AS n, generate_series(1, 1000) AS k
"""

_HISTORY = """
INSERT INTO job_events (job_id, at, event, lease_token, worker_id, started_at, detail)
SELECT $1, now() - last * interval '1 second', event, token, (SELECT id FROM workers ORDER BY id LIMIT 1),
       now() - first * interval '1 second',
       detail::jsonb || CASE token WHEN 1 THEN jsonb_build_object('retry_at', now() - interval '510 seconds')
                        ELSE '{}' END
  FROM (VALUES (1, 540, 531, 'retry_scheduled', '{"code": "GW_5XX", "message": "The converter answered 502."}'),
               (2, 500, 440, 'crashed', '{"code": "WORKER_CRASHED", "message": "The worker died."}'),
               (3, 420, 402, 'succeeded', '{}')) AS runs (token, first, last, event, detail)
"""


async def a_thousand_kinds(connection: Connection) -> None:
    """An hour of a thousand kinds that all have work to do. One of them, `kind_777`, has a dead letter."""
    await connection.execute(_KINDS)
    await connection.execute("ANALYZE kind_samples, finished_by_minute")


async def fill(connection: Connection, *, workers: int, **jobs: int) -> None:
    """Make workers and so many jobs in each state, spread over an hour; sick in a few ways, as real systems are."""
    await breaker.register_kinds(
        connection,
        {
            "convert_pdf": ["gateway", "storage"],
            "extract_file": ["storage"],
            "process_batch": [],
            "deliver_webhook": [],
        },
    )
    await connection.execute(
        "UPDATE kinds SET queue = CASE name WHEN 'deliver_webhook' THEN 'webhooks' ELSE 'default' END"
    )
    await connection.execute(_WORKERS, workers)
    for state, number in jobs.items():
        await connection.execute(_JOBS, state, 240 if state == "running" else 3600, number)
    await connection.execute(_SAMPLES)
    await connection.execute(_MINUTES)
    await control.pause(connection, "webhooks", "The customer's server is being moved.")
    assert await take_if_due(connection, 0.0)


async def job_with_a_life(connection: Connection) -> uuid.UUID:
    """A job that failed, crashed its worker and then succeeded."""
    job_id: uuid.UUID = await connection.fetchval("SELECT id FROM jobs WHERE state = 'succeeded' ORDER BY id LIMIT 1")
    await connection.execute(
        "UPDATE jobs SET created_at = now() - interval '600 seconds', finished_at = now() - interval '402 seconds',"
        " lease_token = 3, attempts = 1, crashes = 1 WHERE id = $1",
        job_id,
    )
    await connection.execute(_HISTORY, job_id)
    return job_id
