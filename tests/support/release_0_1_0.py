"""The previous release, 0.1.0: its code, which comes from the repository's history, and a database as it leaves one."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_SUBJECT = "^Release 0.1.0$"
_CLI, _TESTS = "cli/src", "tests"
_PARTS = ("libs", "services", _CLI, f"{_TESTS}/support")

_MIGRATE = "import asyncio, sys; from waybill.db.migrations import upgrade; asyncio.run(upgrade(*sys.argv[1:]))"

_CLIENT = """
import asyncio, sys
import asyncpg
from support.handlers import EFFECT
from waybill.db import SchemaMismatch, check_schema
from waybill.jobs import NewJob, enqueue_many

async def main(url):
    connection = await asyncpg.connect(url)
    while question := (await asyncio.to_thread(sys.stdin.readline)).strip():
        if question == "ready?":
            try:
                await check_schema(connection)
                print("ready", flush=True)
            except SchemaMismatch as mismatch:
                print(mismatch, flush=True)
        else:
            async with connection.transaction():
                await enqueue_many(connection, [NewJob(EFFECT, "acme") for _ in range(int(question))])
            print("done", flush=True)

asyncio.run(main(sys.argv[1]))
"""

DATA = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, finished_at)
VALUES ('01890000-0000-7000-8000-000000000001', 'acme', 'tenant:acme', 'convert_pdf', 'convert', 'succeeded', '{}', 60,
        now());
INSERT INTO job_events (job_id, event) VALUES ('01890000-0000-7000-8000-000000000001', 'succeeded');
INSERT INTO job_artefacts (job_id, name, storage_key, media_type, bytes, sha256, lease_token)
VALUES ('01890000-0000-7000-8000-000000000001', 'xml', 'results/x', 'application/xml', 1, 'ab', 1);
INSERT INTO workers (id, name, host, pid, version, queues, kinds, concurrency, state)
VALUES ('01890000-0000-7000-8000-000000000002', 'w:1', 'w', 1, '0.1.0', '{default}', '{selftest}', 1, 'active');
INSERT INTO queues (name, paused_at) VALUES ('default', now());
INSERT INTO idempotency_keys (tenant, key, fingerprint, state, attempt, created_at, stale_at, expires_at)
VALUES ('acme', 'k', 'f', 'done', 1, now(), now(), now());
INSERT INTO caps (tenant, kind, most) VALUES ('acme', NULL, 3);
INSERT INTO decided_caps (kind) VALUES ('convert_pdf');
INSERT INTO schedules (name, cron, timezone, missed, grace, kind, queue, tenant, payload, max_attempts, max_crashes,
                       time_limit)
VALUES ('nightly', '0 2 * * *', 'UTC', 'skip', 0, 'selftest', 'default', 'acme', '{}', 1, 3, 60);
INSERT INTO kinds (name, dependency) VALUES ('convert_pdf', 'gateway');
INSERT INTO breakers (name, state) VALUES ('gateway', 'closed');
INSERT INTO breaker_counts (name, bucket, calls, failures) VALUES ('gateway', now(), 10, 9);
INSERT INTO breaker_events (name, event, detail) VALUES ('gateway', 'opened', '{}');
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status, revision)
VALUES ('01890000-0000-7000-8000-000000000001', 'acme', 'tenant:acme', 'invoice.pdf', 1000, 'ab',
        'pt_simon_invoice_v1', 'uploads/23/06/30/01890000-0000-7000-8000-000000000001.pdf', 'complete', 1);
INSERT INTO revisions (job_id, number, author, changes, xml_key, xml_bytes, xml_sha256, record_key, record_bytes,
                       record_sha256)
VALUES ('01890000-0000-7000-8000-000000000001', 1, 'key:erp', '[]', 'results/x/r1.xml', 1, 'ab', 'results/x/r1.json', 1,
        'ab');
INSERT INTO durations (kind, size, samples, low, median, high, updated_at)
VALUES ('convert_pdf', 17, 9, 1, 2, 3, now());
INSERT INTO api_keys (id, tenant, name, hash, hint, permissions)
VALUES ('01890000-0000-7000-8000-0000000000aa', 'acme', 'erp', '\\xab', 'wxyz', '{convert:read}');
INSERT INTO secrets (name, value) VALUES ('sessions', '\\xab');
INSERT INTO rate_limits (subject, tat) VALUES ('upload:tenant:acme', now());
INSERT INTO garbage (key, since) VALUES ('results/old', now());
INSERT INTO storage_copies (place, key, bytes, sha256, copied_at) VALUES ('/there', 'results/x', 1, 'ab', now());
INSERT INTO janitor_lease (name, token, holder, expires_at) VALUES ('janitor', 1, 'here', now());
INSERT INTO janitor_runs (id, holder, started_at, outcome)
VALUES ('01890000-0000-7000-8000-0000000000bb', 'here', now(), 'done');
INSERT INTO janitor_tasks (run_id, task, started_at, outcome, done, found)
VALUES ('01890000-0000-7000-8000-0000000000bb', 'documents', now(), 'done', '{}', '{}');
INSERT INTO janitor_totals (task, figure, total) VALUES ('documents', 'documents', 1);
INSERT INTO janitor_places (task, place) VALUES ('missing', '');
INSERT INTO erasures (id, tenant, requested_at) VALUES ('01890000-0000-7000-8000-0000000000cc', 'other', now());
INSERT INTO tenants (name, weight, pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days) VALUES
    ('acme', 2, 1.5, 60, true, NULL), ('keeper', 1, NULL, NULL, false, 365), ('plain', 3, NULL, NULL, NULL, NULL);
"""
"""A row for every table, and tenants with ages of their own."""


class Release:
    """The release's code. It needs nothing that this release's environment does not have."""

    def __init__(self, folder: Path) -> None:
        """Unpack it into a folder. Skips the test where the history does not reach back to it."""
        found = _git("log", "--format=%H", f"--grep={_SUBJECT}", "-1").strip()
        if not found:
            pytest.skip("the history is too short: it has no commit 'Release 0.1.0'")
        archive = _git("archive", found.decode(), *_PARTS)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        self.path = os.pathsep.join(
            str(one) for one in (*sorted(folder.glob("*/*/src")), folder / _CLI, folder / _TESTS)
        )
        """For PYTHONPATH: its packages, and its tests' handlers, which a worker can serve."""

    def migrate(self, url: str, revision: str = "head") -> None:
        """What `waybill migrate` of release 0.1.0 does."""
        subprocess.run([sys.executable, "-c", _MIGRATE, url, revision], check=True, env=self._environment())

    def client(self, url: str) -> Client:
        return Client([sys.executable, "-c", _CLIENT, url], self._environment())

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": self.path}


class Client:
    """A process of release 0.1.0 that enqueues jobs, and says whether that release is content with the schema."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._one_at_a_time = threading.Lock()

    async def enqueue(self, jobs: int) -> None:
        """Enqueue jobs of the kind `effect`."""
        assert await asyncio.to_thread(self._ask, str(jobs)) == "done"

    async def is_ready(self) -> bool:
        """What `/readyz` of that release asks of the database."""
        return await asyncio.to_thread(self._ask, "ready?") == "ready"

    def _ask(self, question: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_at_a_time:
            self._process.stdin.write(question + "\n")
            return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", _REPOSITORY, *arguments], check=True, capture_output=True).stdout
