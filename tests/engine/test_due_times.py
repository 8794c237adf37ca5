"""A search for scheduled jobs begins where the last one ended, and nothing is missed by that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from support.claimants import fill, pages_touched
from support.engine import WORK, Connect, count
from waybill.db.database import Connection
from waybill_engine import NewJob
from waybill_engine.due_times import DueScan, next_due
from waybill_engine.enqueue import enqueue
from waybill_engine.promotion import promote_due

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Watch:
    """A monotonic clock that stands still."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_search_begins_a_minute_before_the_last_one_ended() -> None:
    scan = DueScan(Watch())
    assert scan.since() is None
    scan.searched(NOON)
    assert scan.since() == NOON - timedelta(seconds=60)


def test_a_search_begins_anew_every_half_minute() -> None:
    watch = Watch()
    scan = DueScan(watch)
    scan.since()
    scan.searched(NOON)
    watch.now += 29
    assert scan.since() is not None
    watch.now += 1
    assert scan.since() is None
    scan.searched(NOON)
    assert scan.since() is not None


def test_a_clock_that_is_set_back_makes_the_search_begin_anew() -> None:
    scan = DueScan(Watch())
    scan.since()
    scan.searched(NOON)
    scan.searched(NOON - timedelta(hours=1))
    assert scan.since() is None


async def test_under_a_long_dump_promoted_jobs_lie_in_nobodys_way(connect: Connect) -> None:
    hot, dump = await connect(), await connect()
    await hot.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    await fill(hot, 10_000, state="scheduled")
    await hot.execute("UPDATE jobs SET run_at = now() - interval '1 hour'")
    await hot.execute("VACUUM jobs")
    scan = DueScan(Watch())
    async with dump.transaction(isolation="repeatable_read"):
        await dump.fetchval("SELECT count(*) FROM jobs")
        while (promoted := await promote_due(hot, since=scan.since())).count:
            pass
        scan.searched(promoted.searched)
        from_the_beginning, _ = await pages_touched(hot, lambda: promote_due(hot))
        cost, _ = await pages_touched(hot, lambda: promote_due(hot, since=scan.since()))
        asking, due = await pages_touched(hot, lambda: next_due(hot, scan.since()))
    assert from_the_beginning > 200, "otherwise this shows nothing"
    assert cost < 50
    assert asking < 50
    assert due.job is None


async def test_a_search_in_bites_does_not_pass_what_it_left(hot: Connection) -> None:
    await fill(hot, 30, state="scheduled")
    await hot.execute("UPDATE jobs SET run_at = now() - random() * interval '1 hour'")
    scan = DueScan(Watch())
    while (promoted := await promote_due(hot, 7, since=scan.since())).count:
        scan.searched(promoted.searched)
    assert await count(hot, "state = 'scheduled'") == 0


async def test_a_job_that_is_due_and_waits_for_its_promotion_is_not_passed(hot: Connection) -> None:
    await fill(hot, 1, state="scheduled")
    await hot.execute("UPDATE jobs SET run_at = now() - interval '1 hour'")
    scan = DueScan(Watch())
    for _ in range(3):
        due = await next_due(hot, scan.since())
        scan.searched(due.searched)
        assert due.job is not None
        assert due.job < -3599


async def test_a_job_of_a_transaction_that_was_open_for_long_is_promoted(connect: Connect) -> None:
    hot, slow = await connect(), await connect()
    watch = Watch()
    scan = DueScan(watch)
    async with slow.transaction():
        await enqueue(slow, NewJob(WORK, "acme", delay=60))
        await slow.execute("UPDATE jobs SET run_at = now() - interval '1 hour'")  # it has been open for an hour
        scan.since()
        scan.searched((await promote_due(hot)).searched)
    assert (await promote_due(hot, since=scan.since())).count == 0
    watch.now += 30
    assert (await promote_due(hot, since=scan.since())).count == 1
