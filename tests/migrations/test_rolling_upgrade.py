"""Processes of release 0.1.0 and of this one share a database under load: during the upgrade, after it, and back again.

No job is lost, none runs twice, and no process of either release becomes unready.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from support.customers import Customer
from support.handlers import EFFECT, EFFECTS
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import eventually
from support.release_0_1_0 import Release
from support.stack import Stack
from support.workers import TESTS, WorkerProcess, all_ended, show_logs
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_engine import NewJob, enqueue_many

# No lease ends, however busy the machine is: whatever runs twice does so for another reason.
PATIENT = {"WAYBILL_LEASE_TTL": "120", "WAYBILL_HEARTBEAT_INTERVAL": "10", "WAYBILL_RESCUE_INTERVAL": "1"}
ACTIVE = "SELECT count(*) FROM jobs WHERE kind = 'effect' AND state IN ('scheduled', 'queued', 'running')"
DONE_BY = """
SELECT count(*) FROM job_events JOIN workers ON workers.id = job_events.worker_id
 WHERE event = 'succeeded' AND workers.pid = ANY ($1::int[])
"""

Enqueue = Callable[[int], Awaitable[None]]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return Release(tmp_path_factory.mktemp("release"))


@pytest.fixture
async def connection(release: Release, empty_database_url: str) -> AsyncIterator[Connection]:
    """A database of release 0.1.0."""
    await asyncio.to_thread(release.migrate, empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(EFFECTS)
    yield connection
    await connection.close()


class Fleet:
    """Workers of both releases on one database."""

    def __init__(self, url: str, folder: Path, release: Release, settings: dict[str, str]) -> None:
        self._url, self._folder = url, folder
        self._old = {**PATIENT, **settings, "PYTHONPATH": release.path}
        self._new = {**PATIENT, **settings, "PYTHONPATH": str(TESTS)}
        self.started: list[WorkerProcess] = []

    def start_old(self, **settings: str) -> WorkerProcess:
        return self._start("old", {**self._old, **settings}, shared_imports=False)

    def start_new(self, **settings: str) -> WorkerProcess:
        return self._start("new", {**self._new, **settings}, shared_imports=True)

    def _start(self, release: str, settings: dict[str, str], *, shared_imports: bool) -> WorkerProcess:
        name = f"{release}-{len(self.started)}"
        self.started.append(
            WorkerProcess(
                self._url, self._folder, name, settings, program="waybill_worker", shared_imports=shared_imports
            )
        )
        return self.started[-1]


@contextmanager
def workers(url: str, folder: Path, release: Release, **settings: str) -> Iterator[Fleet]:
    fleet = Fleet(url, folder, release, settings)
    try:
        yield fleet
    finally:
        for each in fleet.started:
            each.clean_up()
        print(show_logs(fleet.started))  # pytest shows this if the test failed


class Load:
    """Jobs that never stop coming, a few more than are waiting to be done."""

    def __init__(self, url: str, enqueue: Enqueue, at_once: int) -> None:
        self._url, self._enqueue, self._at_once = url, enqueue, at_once
        self._stopped = False
        self.jobs = 0
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        watcher = await asyncpg.connect(self._url)
        while not self._stopped:
            await self._enqueue(self._at_once)
            self.jobs += self._at_once

            async def has_room() -> bool:
                return self._stopped or int(await watcher.fetchval(ACTIVE)) < 2 * self._at_once

            await eventually(has_room, within=120)
        await watcher.close()

    async def stop(self) -> int:
        self._stopped = True
        await self._task
        return self.jobs


@asynccontextmanager
async def always_ready(what: str, is_ready: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
    """Asks again and again, and fails if the answer was ever no."""
    asked, refused, leaving = 0, 0, False

    async def watch() -> None:
        nonlocal asked, refused
        while not leaving:
            asked += 1
            refused += not await is_ready()
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        leaving = True
        await watching
    assert asked
    assert refused == 0, f"{what} was not ready {refused} times of {asked}"


async def until_done_by(connection: Connection, *processes: WorkerProcess, more: int) -> None:
    """Wait until these workers have done some more jobs."""
    pids = [each.pid for each in processes]
    before = await connection.fetchval(DONE_BY, pids)

    async def done() -> bool:
        for each in processes:
            assert each.process.poll() is None, f"a worker ended:\n{each.text[-3000:]}"
        return int(await connection.fetchval(DONE_BY, pids)) >= int(before) + more

    await eventually(done, within=100, what=f"{more} more jobs by {[each.log.stem for each in processes]}")


async def leave(*processes: WorkerProcess) -> None:
    """As a deployment stops them: they finish what they do, and release the rest."""
    for each in processes:
        each.signal(signal.SIGTERM)
    for each in processes:
        assert await each.ended(60) == 0, each.text[-3000:]


async def every_effect_happened_once(connection: Connection, jobs: int) -> None:
    await eventually(lambda: all_ended(connection), within=100)
    rows = await connection.fetch("SELECT state, count(*) FROM jobs WHERE kind = 'effect' GROUP BY state")
    assert [tuple(row) for row in rows] == [("succeeded", jobs)], "none is lost"
    row = await connection.fetchrow("SELECT count(*), count(DISTINCT job_id) FROM effects")
    assert row is not None
    assert tuple(row) == (jobs, jobs), "none ran twice"
    charged = "SELECT max(attempts + crashes) FROM jobs WHERE kind = 'effect'"
    assert await connection.fetchval(charged) == 0, "and none was charged"


async def new_jobs(connection: Connection, count: int) -> None:
    await enqueue_many(connection, [NewJob(EFFECT, "acme") for _ in range(count)])


async def test_both_releases_work_side_by_side_on_the_way_up_and_on_the_way_back(
    release: Release, connection: Connection, empty_database_url: str, tmp_path: Path
) -> None:
    client = release.client(empty_database_url)
    other = await asyncpg.connect(empty_database_url)
    with workers(empty_database_url, tmp_path, release) as fleet:
        async with always_ready("release 0.1.0", client.is_ready):
            load = Load(empty_database_url, client.enqueue, 10)
            old = fleet.start_old()
            await until_done_by(connection, old, more=10)

            await upgrade(empty_database_url)
            new = fleet.start_new()
            new_load = Load(empty_database_url, lambda count: new_jobs(other, count), 10)
            await until_done_by(connection, old, more=10)
            await until_done_by(connection, new, more=10)

            await leave(old)
            restarted = fleet.start_old()
            await until_done_by(connection, restarted, more=10)

            done_by_new = await new_load.stop()
            await leave(new)
            await until_done_by(connection, restarted, more=10)
            await every_effect_happened_once(connection, await load.stop() + done_by_new)
    client.close()
    await other.close()


@pytest.mark.heavy
@pytest.mark.timeout(600)
async def test_documents_and_jobs_survive_three_upgrades_and_rollbacks_under_load(
    release: Release, connection: Connection, empty_database_url: str, tmp_path: Path
) -> None:
    client = release.client(empty_database_url)
    other = await asyncpg.connect(empty_database_url)
    shared = {
        "WAYBILL_HOME": str(tmp_path / "home"),
        "WAYBILL_API_UPLOADS_PER_MINUTE": "10000",
        "WAYBILL_GATEWAY_PROCESSES": "2",
        "WAYBILL_GATEWAY_SECRET": "",  # the gateway of 0.1.0 knows none
    }
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    old = Stack(empty_database_url, tmp_path / "old", shared_imports=False, PYTHONPATH=release.path)
    new = Stack(empty_database_url, tmp_path / "new")
    old.settings.update(shared)
    gateway = {"WAYBILL_GATEWAY_URL": f"http://127.0.0.1:{old.gateway_port}"}
    new.settings.update(shared | gateway)
    customers = {"old": Customer(old.url), "new": Customer(new.url)}
    uploaded: list[str] = []
    of_new: list[int] = []

    async def upload(through: str, count: int) -> None:
        for _ in range(count):
            pdf = print_invoice(make_invoice(len(uploaded), 3), REFERENCE)
            uploaded.append((await customers[through].upload(f"{len(uploaded)}.pdf", pdf))["id"])

    handlers_of_old = {"WAYBILL_WORKER_HANDLERS": "support.handlers,waybill_worker.handlers.convert"}
    handlers_of_new = {"WAYBILL_WORKER_HANDLERS": "support.handlers,waybill_convert.handlers"}
    try:
        await old.start_all("api", "gateway")
        with workers(empty_database_url, tmp_path, release, **shared, **gateway) as fleet:
            load = Load(empty_database_url, client.enqueue, 50)
            olds = [fleet.start_old(**handlers_of_old) for _ in range(2)]
            await upload("old", 2)
            await until_done_by(connection, *olds, more=200)
            async with always_ready("release 0.1.0", lambda: is_ready(old.url)):
                await upgrade(empty_database_url)
                for _ in range(3):
                    await new.start_all("api")
                    # The session that one release began goes on with the other.
                    customers["new"].http.cookies.update(customers["old"].http.cookies)
                    async with always_ready("this release", lambda: is_ready(new.url)):
                        news = [fleet.start_new(**handlers_of_new) for _ in range(2)]
                        new_load = Load(empty_database_url, lambda count: new_jobs(other, count), 50)
                        await upload("new", 2)
                        await until_done_by(connection, *news, more=200)
                        await upload("old", 2)
                        await leave(*olds)  # the upgrade is complete, but for the API
                        await until_done_by(connection, *news, more=200)
                        olds = [fleet.start_old(**handlers_of_old) for _ in range(2)]
                        await until_done_by(connection, *olds, more=200)
                        of_new.append(await new_load.stop())
                        await leave(*news)
                    new.stop("api")
                    await upload("old", 2)
                    await until_done_by(connection, *olds, more=200)
                await every_effect_happened_once(connection, await load.stop() + sum(of_new))
                for job_id in uploaded:
                    ended = await customers["old"].ended(job_id)
                    assert ended["status"] == "complete", ended
                assert len(set(uploaded)) == 2 + 3 * 6
    finally:
        old.close()
        new.close()
        client.close()
        for each in customers.values():
            await each.leave()
        await other.close()


async def is_ready(url: str) -> bool:
    """Whether `/readyz` is content with the schema. A late answer of a busy machine is no refusal."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        answer = await client.get(f"{url}/readyz")
        return answer.status_code == 200 or bool(answer.json()["code"] == "DB_UNAVAILABLE")
