"""Programs without an event loop enqueue over their own connection, with any driver."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from support.engine import WORK, Connect, row, start_worker, take
from waybill.db.database import Connection
from waybill.errors import Forbidden, Refused
from waybill.ids import new_id
from waybill_engine import JobKind, NewJob, RetryPolicy, SequenceKey, Unique, UniqueScope, enqueue, sync
from waybill_engine.sequences import take_missed_turns
from waybill_engine.tenants import grant_priority

SLOW = JobKind("slow", queue="night", time_limit=90.5, max_crashes=2, retry=RetryPolicy(retries=7))


@pytest.fixture
def synchronous(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as connection:
        yield connection


@pytest.fixture
async def look(connect: Connect) -> Connection:
    return await connect()


async def test_the_job_exists_exactly_if_the_callers_rows_do(
    synchronous: psycopg.Connection[Any], look: Connection
) -> None:
    await look.execute("CREATE TABLE orders (customer text)")
    for customer, commits in (("ada", False), ("bob", True)):
        synchronous.execute("INSERT INTO orders VALUES (%s)", [customer])
        done = sync.enqueue(synchronous, NewJob(WORK, "shop", {"to": customer}))
        assert done.created
        assert await look.fetchval("SELECT count(*) FROM jobs") == 0
        synchronous.commit() if commits else synchronous.rollback()
    assert [one["customer"] for one in await look.fetch("SELECT customer FROM orders")] == ["bob"]
    (claimed,) = await take(look, await start_worker(look))
    assert (claimed.id, claimed.payload) == (done.id, {"to": "bob"})


async def test_everything_that_a_job_says_arrives(synchronous: psycopg.Connection[Any], look: Connection) -> None:
    await grant_priority(look, "acme", 5)
    facts: dict[str, Any] = {
        "payload": {"numbers": [1, 2.5], "name": "Åsa % '\\"},
        "owner": "session-1",
        "priority": 4,
        "cost": 2**40,
        "run_at": datetime(2998, 5, 17, 12, 30, 0, 123456, tzinfo=UTC),
        "unique": Unique("k", UniqueScope.WINDOW, 60.5),
        "traceparent": "00-ab-cd-01",
        "tracestate": "vendor=1",
    }
    written = []
    for by_function in (False, True):
        job = NewJob(SLOW, "acme", id=new_id(), **facts)
        done = sync.enqueue(synchronous, job) if by_function else await enqueue(look, job)
        synchronous.commit()
        assert done.id == job.id
        columns = dict(await row(look, done.id))
        moments = {name: columns.pop(name) for name in ("id", "created_at", "updated_at", "unique_until")}
        written.append(columns | {"window": moments["unique_until"] - moments["created_at"]})
        await look.execute("DELETE FROM jobs")
    assert written[0] == written[1]


async def test_no_worker_need_have_made_the_kind_known(synchronous: psycopg.Connection[Any], look: Connection) -> None:
    done = sync.enqueue(synchronous, NewJob(SLOW, "acme"))
    synchronous.commit()
    job = await row(look, done.id)
    assert (job["queue"], job["max_attempts"], job["max_crashes"], job["time_limit"]) == ("night", 8, 2, 90.5)


async def test_a_job_of_a_sequence_waits_for_those_before_it(
    synchronous: psycopg.Connection[Any], look: Connection
) -> None:
    for _ in range(3):
        sync.enqueue(synchronous, NewJob(WORK, "acme", sequence=SequenceKey("k", at_once=2)))
    synchronous.commit()
    await take_missed_turns(look)
    assert len(await take(look, await start_worker(look))) == 2


def test_a_key_that_is_taken_answers_with_the_job_that_has_it(synchronous: psycopg.Connection[Any]) -> None:
    first = sync.enqueue(synchronous, NewJob(WORK, "acme", unique=Unique("k")))
    again = sync.enqueue(synchronous, NewJob(WORK, "acme", unique=Unique("k")))
    assert (again.id, again.created) == (first.id, False)


async def test_refusals_are_those_of_the_taxonomy(synchronous: psycopg.Connection[Any], look: Connection) -> None:
    with pytest.raises(Refused, match="must be JSON"):
        sync.enqueue(synchronous, NewJob(WORK, "acme", {"what": object()}))
    with pytest.raises(Forbidden) as refused:
        sync.enqueue(synchronous, NewJob(WORK, "acme", priority=3))
    with pytest.raises(Forbidden) as in_python:
        await enqueue(look, NewJob(WORK, "acme", priority=3))
    assert refused.value.message == in_python.value.message
    synchronous.rollback()
    job = NewJob(WORK, "acme")
    sync.enqueue(synchronous, job)
    with pytest.raises(Refused, match=f"There is a job with the id {job.id} already"):
        sync.enqueue(synchronous, job)


def test_what_is_not_the_functions_refusal_comes_through_as_it_is(synchronous: psycopg.Connection[Any]) -> None:
    synchronous.execute("DROP FUNCTION waybill_enqueue")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        sync.enqueue(synchronous, NewJob(WORK, "acme"))


class Other:
    """A connection of a driver that tells of errors in another way: as psycopg2 (an attribute), or pg8000 (a dict)."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def cursor(self) -> Other:
        return self

    def execute(self, _statement: str, _parameters: object) -> None:
        raise self._error

    def fetchone(self) -> None:
        raise AssertionError

    def close(self) -> None:
        pass


def test_other_drivers_errors_are_understood_too() -> None:
    like_psycopg2 = Exception("Priority 3 is above")
    like_psycopg2.pgcode = "42501"  # type: ignore[attr-defined]
    like_pg8000 = Exception({"C": "42501", "M": "Priority 3 is above", "H": "An operator can grant it"})
    for error, said in ((like_psycopg2, "Priority 3 is above"), (like_pg8000, "is above An operator can grant it")):
        with pytest.raises(Forbidden, match=said):
            sync.enqueue(Other(error), NewJob(WORK, "acme"))
    with pytest.raises(ZeroDivisionError):
        sync.enqueue(Other(ZeroDivisionError()), NewJob(WORK, "acme"))
