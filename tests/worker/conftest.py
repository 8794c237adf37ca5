"""Workers for the tests of this folder, and the table their effects show in."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from support.handlers import EFFECTS
from support.workers import WorkerProcess, show_logs
from waybill.db.database import Connection

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
async def connection(connect: Callable[[], AsyncIterator[Connection]]) -> Connection:
    connection: Connection = await connect()  # type: ignore[misc]
    await connection.execute(EFFECTS)
    return connection


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts `python -m waybill_worker` against the test's database; what still lives afterwards is killed."""
    started: list[WorkerProcess] = []
    numbers = itertools.count(1)

    def start(url: str = database_url, **settings: object) -> WorkerProcess:
        named = {f"WAYBILL_{key.upper()}": str(value) for key, value in settings.items()}
        started.append(WorkerProcess(url, tmp_path, f"worker-{next(numbers)}", named))
        return started[-1]

    yield start
    for worker in started:
        worker.clean_up()
    print(show_logs(started))  # pytest shows it when the test failed


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A folder where gated handlers announce themselves and wait for a file called `open`."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder
