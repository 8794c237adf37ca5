"""What an operator sees at a glance, from the indexes that have nothing else."""

from __future__ import annotations

import pytest

from support.engine import OTHER, WORK, running_job, some_jobs, start_worker
from waybill.db.database import Connection
from waybill_engine import breaker, control, overview
from waybill_engine.samples import newest, take_if_due


async def test_queues_are_those_of_kinds_and_workers_and_those_that_somebody_paused(hot: Connection) -> None:
    await breaker.register_kinds(hot, {"work": []})
    await hot.execute("UPDATE kinds SET queue = 'slow' WHERE name = 'work'")
    await start_worker(hot, queues=["fast"], kinds=["other"])
    await control.pause(hot, "old", "Nobody needs it.")

    found = {one.name: one for one in await overview.known_queues(hot)}

    assert sorted(found) == ["fast", "old", "slow"]
    assert (found["old"].paused_reason, found["slow"].kinds, found["fast"].served) == (
        "Nobody needs it.",
        ["work"],
        ["other"],
    )
    assert found["slow"].paused_at is None


async def test_workers_come_with_their_jobs_and_the_silent_ones_first(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    silent = await start_worker(hot, ttl=-1.0)

    first, second = await overview.live_workers(hot)

    assert (first.id, first.expired, first.running) == (silent.id, True, 0)
    assert (second.id, second.expired, second.running) == (worker.id, False, 1)
    (job,) = await overview.running_jobs(hot)
    assert (job.id, job.worker_id) == (claimed.id, worker.id)


async def test_a_job_that_waited_longest_is_listed_while_it_waits(hot: Connection) -> None:
    (job,) = await some_jobs(hot, 1, WORK)
    assert await take_if_due(hot, 0.0)
    sample = await newest(hot)
    assert sample is not None
    assert [one.id for one in await overview.still_waiting(hot, sample.waiting_longest)] == [job]
    await control.cancel(hot, job)
    assert await overview.still_waiting(hot, sample.waiting_longest) == []


async def test_dead_letters_are_grouped_by_kind_and_error(hot: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_jobs(hot, 3, WORK)
    (other,) = await some_jobs(hot, 1, OTHER)
    await hot.execute(
        "UPDATE jobs SET state = 'dead_letter', finished_at = now(),"
        " error_code = 'GW_5XX', error_message = 'It said 502.'"
    )
    await hot.execute("UPDATE jobs SET error_code = NULL WHERE id = $1", other)

    found = await overview.dead_letters(hot)
    assert [(one.kind, one.error_code, one.jobs, one.message) for one in found.groups] == [
        ("work", "GW_5XX", 3, "It said 502."),
        ("other", None, 1, "It said 502."),
    ]
    assert not found.more
    monkeypatch.setattr(overview, "MOST_DEAD_LETTERS", 2)
    assert (await overview.dead_letters(hot)).more
