"""The migrations make the schema the models describe, from empty and from every earlier revision with data in it."""

from __future__ import annotations

import asyncpg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.db.models import compare_type, metadata
from waybill.db.schema import MIGRATIONS, head

REVISIONS = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]

# What a database of that revision may hold: later migrations must carry it along.
DATA = {
    "0001": """
        INSERT INTO workers (id, name, host, pid, version, queues, kinds, concurrency, state)
        VALUES ('01890000-0000-7000-8000-00000000000a', 'w:1', 'w', 1, '0.1.0', '{default}', '{selftest}', 1, 'active');
        INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit)
        VALUES ('01890000-0000-7000-8000-000000000001', 'acme', 'acme', 'selftest', 'default', 'queued', '{}', 60),
               ('01890000-0000-7000-8000-000000000002', 'acme', 'acme', 'selftest', 'default', 'scheduled', '{}', 60),
               ('01890000-0000-7000-8000-000000000003', 'acme', 'acme', 'selftest', 'default', 'dead_letter', '{}', 60);
        INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, lease_owner, lease_token)
        VALUES ('01890000-0000-7000-8000-000000000004', 'acme', 'acme', 'selftest', 'default', 'running', '{}', 60,
                '01890000-0000-7000-8000-00000000000a', 1);
        INSERT INTO job_events (job_id, event) VALUES ('01890000-0000-7000-8000-000000000003', 'dead_lettered');
        INSERT INTO job_artefacts (job_id, name, storage_key, media_type, bytes, sha256, lease_token)
        VALUES ('01890000-0000-7000-8000-000000000003', 'result.xml', 'results/x', 'application/xml', 1, 'ab', 1);
        INSERT INTO queues (name, paused_at) VALUES ('default', now());
        INSERT INTO idempotency_keys (tenant, key, fingerprint, state, attempt, created_at, stale_at, expires_at)
        VALUES ('acme', 'k', 'f', 'in_progress', 1, now(), now(), now());
    """,
    "0002": """
        INSERT INTO tenants (name, weight) VALUES ('acme', 2);
        INSERT INTO caps (tenant, kind, most) VALUES ('acme', NULL, 3);
    """,
    "0003": """
        INSERT INTO schedules (name, cron, timezone, missed, grace, kind, queue, tenant, payload, max_attempts,
                               max_crashes, time_limit, next_at)
        VALUES ('nightly', '30 2 * * *', 'Europe/Berlin', 'once', 60, 'selftest', 'default', 'acme', '{}', 3, 3, 60,
                now());
    """,
    "0004": """
        INSERT INTO kinds (name, dependency) VALUES ('convert_pdf', 'converter');
        INSERT INTO breakers (name, state, open_until, open_seconds) VALUES ('converter', 'open', now(), 30);
        INSERT INTO breaker_counts (name, bucket, calls, failures) VALUES ('converter', now(), 10, 9);
        INSERT INTO breaker_events (name, event, detail) VALUES ('converter', 'opened', '{}');
    """,
    "0005": """
        INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, run_at,
                          children, pending_children)
        VALUES ('01890000-0000-7000-8000-000000000005', 'acme', 'acme', 'selftest', 'default', 'scheduled', '{}', 60,
                'infinity', 2, 1);
        INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, parent_id, awaited)
        VALUES ('01890000-0000-7000-8000-000000000006', 'acme', 'acme', 'selftest', 'default', 'queued', '{}', 60,
                '01890000-0000-7000-8000-000000000005', true);
    """,
    "0006": """
        INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit)
        VALUES ('01890000-0000-7000-8000-000000000007', 'acme', 'tenant:acme', 'convert_pdf', 'convert', 'queued', '{}',
                600);
        INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key)
        VALUES ('01890000-0000-7000-8000-000000000007', 'acme', 'tenant:acme', 'invoice.pdf', 1000, 'ab',
                'pt_simon_invoice_v1', 'uploads/23/06/30/01890000-0000-7000-8000-000000000007.pdf');
        INSERT INTO api_keys (id, tenant, name, hash, hint, permissions)
        VALUES ('01890000-0000-7000-8000-0000000000aa', 'acme', 'erp', '\\xab', 'wxyz', '{convert:read}');
        INSERT INTO secrets (name, value) VALUES ('sessions', '\\xab');
        INSERT INTO rate_limits (subject, tat) VALUES ('upload:tenant:acme', now());
    """,
    "0007": """
        INSERT INTO revisions (job_id, number, author, changes, xml_key, xml_bytes, xml_sha256, record_key,
                               record_bytes, record_sha256)
        VALUES ('01890000-0000-7000-8000-000000000007', 1, 'key:erp', '[]', 'results/x/r1-ab.xml', 1, 'ab',
                'results/x/r1-ab.json', 1, 'ab');
    """,
    "0008": """
        INSERT INTO decided_caps (kind) VALUES ('convert_pdf');
    """,
    "0009": """
        INSERT INTO garbage (key, since) VALUES ('results/x', now());
        INSERT INTO janitor_lease (name, token, holder, expires_at) VALUES ('janitor', 1, 'here', now());
        INSERT INTO janitor_runs (id, holder, started_at, outcome)
        VALUES ('01890000-0000-7000-8000-0000000000bb', 'here', now(), 'running');
        INSERT INTO janitor_tasks (run_id, task, started_at, outcome, done, found)
        VALUES ('01890000-0000-7000-8000-0000000000bb', 'documents', now(), 'running', '{}', '{}');
        INSERT INTO janitor_totals (task, figure, total) VALUES ('documents', 'documents', 1);
        INSERT INTO janitor_places (task, place) VALUES ('missing', '');
        INSERT INTO erasures (id, tenant, requested_at)
        VALUES ('01890000-0000-7000-8000-0000000000cc', 'acme', now());
        INSERT INTO durations (kind, size, samples, low, median, high, updated_at)
        VALUES ('convert_pdf', 17, 9, 1, 2, 3, now());
        INSERT INTO storage_copies (place, key, bytes, sha256, copied_at)
        VALUES ('/there', 'results/x', 1, 'ab', now());
    """,
}


async def differences(url: str) -> list[object]:
    """How the database differs from the models."""

    def compare(connection: sa.Connection) -> list[object]:
        options = {"compare_type": compare_type, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    db = Database(DatabaseUrl(url))
    try:
        async with db.engine.connect() as connection:
            return await connection.run_sync(compare)
    finally:
        await db.close()


async def row_counts(url: str) -> dict[str, int]:
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        )
        return {row[0]: await connection.fetchval(f"SELECT count(*) FROM {row[0]}") for row in tables}
    finally:
        await connection.close()


async def test_migrated_from_empty_the_schema_is_what_the_models_describe(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    assert await differences(empty_database_url) == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_migrated_from_an_earlier_revision_the_schema_is_the_same_and_its_data_is_still_there(
    empty_database_url: str, revision: str
) -> None:
    await upgrade(empty_database_url, revision)
    connection = await asyncpg.connect(empty_database_url)
    for earlier in REVISIONS[: REVISIONS.index(revision) + 1]:
        await connection.execute(DATA[earlier])
    await connection.close()
    before = await row_counts(empty_database_url)
    assert all(before.values()), "every table of a revision has data to carry along"

    await upgrade(empty_database_url)

    assert await differences(empty_database_url) == []
    after = await row_counts(empty_database_url)
    assert {table: after[table] for table in before} == before


async def test_migrating_what_is_current_changes_nothing(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    await upgrade(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == head()
    await connection.close()
