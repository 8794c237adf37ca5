"""`since` never misses a change, however late it commits, and never tells of others'."""

from __future__ import annotations

import asyncio
import random
import uuid
from datetime import UTC, datetime

import pytest

from convert.conftest import put
from support.api_server import Converter
from support.engine import Connect
from waybill.errors import Refused
from waybill.ids import new_id
from waybill.security import Principal, of_session
from waybill_convert.cursors import ListPosition, Since, parse_since
from waybill_convert.service import Conversions


async def test_a_change_that_commits_late_is_not_missed(
    conversions: Conversions, me: Principal, connect: Connect
) -> None:
    slow, quick = [(await put(conversions, me)).job.id for _ in range(2)]
    start = (await conversions.listing(me.owner)).since
    late, early = await connect(), await connect()
    begun = late.transaction()
    await begun.start()
    await late.execute("UPDATE jobs SET progress = 0.5 WHERE id = $1", slow)  # the lower transaction id
    await early.execute("UPDATE jobs SET progress = 0.5 WHERE id = $1", quick)
    first = await conversions.changes_since(me.owner, start)
    assert [view.id for view in first.jobs] == [quick]
    await begun.commit()
    second = await conversions.changes_since(me.owner, first.since)
    assert slow in [view.id for view in second.jobs], "its id is lower than what was seen, and yet"
    third = await conversions.changes_since(me.owner, second.since)
    assert third.jobs == []


async def test_a_list_does_not_pass_a_change_under_way(
    conversions: Conversions, me: Principal, connect: Connect
) -> None:
    """The same for the first look: what it could not see, the next one tells."""
    job = (await put(conversions, me)).job.id
    late = await connect()
    begun = late.transaction()
    await begun.start()
    await late.execute("UPDATE jobs SET progress = 0.5 WHERE id = $1", job)
    other = await connect()
    for _ in range(3):
        await other.execute("SELECT pg_current_xact_id()")
    seen = await conversions.listing(me.owner)
    assert seen.jobs[0].progress is None
    await begun.commit()
    assert [view.progress for view in (await conversions.changes_since(me.owner, seen.since)).jobs] == [0.5]


async def test_followers_see_every_jobs_last_state_whoever_writes_when(
    conversions: Conversions, me: Principal, connect: Connect
) -> None:
    jobs = [(await put(conversions, me)).job.id for _ in range(6)]
    cursor = (await conversions.listing(me.owner)).since
    chance = random.Random(7)
    last: dict[uuid.UUID, float] = {}

    async def write(mine: list[uuid.UUID]) -> None:
        connection = await connect()
        for step in range(15):
            async with connection.transaction():
                job = mine[step % len(mine)]
                await connection.execute("UPDATE jobs SET progress = $2 WHERE id = $1", job, step / 100)
                await connection.execute("SELECT pg_sleep($1)", chance.random() / 200)
            last[job] = step / 100

    seen: dict[uuid.UUID, float | None] = {}
    writers = asyncio.gather(*(write(jobs[start::3]) for start in range(3)))
    done = False
    while not done:
        done = writers.done()
        news = await conversions.changes_since(me.owner, cursor, limit=2)
        cursor = news.next or news.since
        seen |= {view.id: view.progress for view in news.jobs}
    await writers
    while news.next:
        news = await conversions.changes_since(me.owner, news.next, limit=2)
        seen |= {view.id: view.progress for view in news.jobs}
    rest = await conversions.changes_since(me.owner, news.since)
    seen |= {view.id: view.progress for view in rest.jobs}
    assert {job: pytest.approx(progress) for job, progress in last.items()} == seen


async def test_a_cursor_from_the_future_starts_over(conversions: Conversions, me: Principal) -> None:
    job = (await put(conversions, me)).job.id
    told = await conversions.changes_since(me.owner, str(Since(2**62)))
    assert [view.id for view in told.jobs] == [job]


async def test_changes_are_ones_own(conversions: Conversions, me: Principal, converter: Converter) -> None:
    start = (await conversions.listing(me.owner)).since
    await put(conversions, of_session(new_id()))
    await converter.finish_all()
    told = await conversions.changes_since(me.owner, start)
    assert (told.jobs, told.deleted, told.total) == ([], [], 0)


async def test_a_reused_job_is_a_change(conversions: Conversions, me: Principal) -> None:
    content = b"%PDF-1.7 same"
    job = (await put(conversions, me, content)).job.id
    start = (await conversions.listing(me.owner)).since
    again = await put(conversions, me, content)
    assert again.deduped_from == job
    assert [(view.id, view.reused) for view in (await conversions.changes_since(me.owner, start)).jobs] == [(job, True)]


def test_cursors_read_back_what_they_say() -> None:
    place = ListPosition(datetime(2026, 11, 16, 8, 30, 1, 123457, tzinfo=UTC), new_id())
    assert ListPosition.parse(str(place)) == place
    for since in (Since(1), Since(2**63 - 1), Since(5, 3, new_id())):
        assert parse_since(str(since)) == since
    for nonsense in ("", "a", str(place), "czk5OTk5OTk5OTk5OTk5OTk5OTk5", "s1", "é", "czE.", "A" * 300):
        with pytest.raises(Refused):
            Since.parse(nonsense)
    for nonsense in ("", str(Since(1)), "cC0xLjA"):
        with pytest.raises(Refused):
            ListPosition.parse(nonsense)
