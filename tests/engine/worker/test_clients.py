"""Clients that all runs of a worker share: opened once, on first use, and closed when the worker stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import structlog

from support import client_handlers
from support.patience import eventually
from support.workers import StartWorker, all_ended
from waybill.db.database import Connection
from waybill.log import enter_job
from waybill_engine import NewJob, enqueue_many
from waybill_engine.worker.clients import Clients


@dataclass
class Service:
    """Something to be a client of: it can refuse, and hang until it is told to answer."""

    opened: int = 0
    closed: int = 0
    refuses: BaseException | None = None
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[int]:
        await self.answers.wait()
        if self.refuses is not None:
            raise self.refuses
        self.opened += 1
        opener = asyncio.current_task()
        try:
            yield self.opened
        finally:
            assert asyncio.current_task() is opener, "a client is closed by the task that opened it"
            self.closed += 1


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    clients = Clients()
    yield clients
    await clients.close()


async def until_waiting(*tasks: asyncio.Task[int]) -> None:
    """Let the tasks run until they wait for the client."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def test_a_client_is_opened_on_first_use_and_closed_with_the_worker() -> None:
    service, clients = Service(), Clients()
    factory = service.client
    assert service.opened == 0
    assert [await clients.use(factory) for _ in range(3)] == [1, 1, 1]
    assert (service.opened, service.closed) == (1, 0)
    await clients.close()
    assert (service.opened, service.closed) == (1, 1)
    with pytest.raises(RuntimeError, match="closed its clients"):
        await clients.use(factory)


async def test_runs_that_ask_at_the_same_time_share_one(clients: Clients) -> None:
    service = Service()
    service.answers.clear()
    asking = [asyncio.create_task(clients.use(service.client)) for _ in range(20)]
    await until_waiting(*asking)
    service.answers.set()
    assert await asyncio.gather(*asking) == [1] * 20


async def test_a_run_that_is_cancelled_while_it_waits_takes_nothing_from_the_others(clients: Clients) -> None:
    service = Service()
    service.answers.clear()
    first, second = (asyncio.create_task(clients.use(service.client)) for _ in range(2))
    await until_waiting(first, second)
    first.cancel()
    service.answers.set()
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await clients.use(service.client) == 1


@pytest.mark.parametrize("refusal", [OSError("no route"), SystemExit(2), asyncio.CancelledError()], ids=repr)
async def test_an_error_on_opening_is_for_those_who_waited_and_the_next_tries_again(
    clients: Clients, refusal: BaseException
) -> None:
    service = Service(refuses=refusal)
    expected = RuntimeError if isinstance(refusal, asyncio.CancelledError) else type(refusal)
    asking = [asyncio.create_task(_raised(clients, service)) for _ in range(2)]
    assert [type(error) for error in await asyncio.gather(*asking)] == [expected] * 2
    service.refuses = None
    assert await clients.use(service.client) == 1


async def _raised(clients: Clients, service: Service) -> BaseException:
    with pytest.raises(BaseException) as raised:
        await clients.use(service.client)
    return raised.value


async def test_a_client_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    service, clients = Service(), Clients()

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        yield
        raise OSError("the other side has hung up")

    await clients.use(broken)
    await clients.use(service.client)
    await clients.close()
    assert service.closed == 1


async def test_a_client_does_not_log_in_the_name_of_the_job_that_asked_first(clients: Clients) -> None:
    seen: list[dict[str, object]] = []

    class Job:
        def log_fields(self) -> dict[str, str]:
            return {"job_id": "the first"}

    @asynccontextmanager
    async def talkative() -> AsyncIterator[None]:
        seen.append(dict(structlog.contextvars.get_contextvars()))
        yield

    enter_job(Job())
    with structlog.contextvars.bound_contextvars(job_id="the first"):
        await clients.use(talkative)
    assert seen == [{}]


async def test_all_jobs_of_a_worker_share_a_client_that_is_closed_when_it_stops(
    connection: Connection, start_worker: StartWorker
) -> None:
    worker = start_worker(worker_handlers="support.client_handlers", worker_concurrency=5)
    await enqueue_many(connection, [NewJob(client_handlers.CALL, "acme") for _ in range(20)])
    await eventually(lambda: all_ended(connection))
    worker.process.terminate()
    assert await worker.ended() == 0
    notes = await connection.fetch("SELECT DISTINCT note FROM public.effects")
    assert [row["note"] for row in notes] == ["client 1"]
    assert await connection.fetchval("SELECT count(*) FROM public.effects") == 20
    assert worker.text.count("client opened") == worker.text.count("client closed") == 1
