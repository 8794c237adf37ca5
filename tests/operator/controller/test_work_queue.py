"""The queue of pools that need a look."""

from __future__ import annotations

import asyncio

import pytest

from support.patience import until
from waybill_operator.controller.work_queue import WorkQueue


async def take(queue: WorkQueue) -> str:
    async with asyncio.timeout(20):
        return await queue.take()


async def test_a_name_waits_once_however_often_it_is_added() -> None:
    queue = WorkQueue()
    for _ in range(5):
        queue.add("a")
    queue.add("b")
    assert [await take(queue), await take(queue)] == ["a", "b"]
    assert len(queue) == 0


async def test_nobody_looks_at_the_same_pool_twice_at_once_and_no_change_is_missed() -> None:
    queue = WorkQueue()
    queue.add("a")
    await take(queue)
    queue.add("a")
    assert len(queue) == 0, "it is being looked at"
    queue.done("a")
    assert await take(queue) == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_what_failed_comes_back_later_each_time_until_it_goes_well() -> None:
    queue = WorkQueue(first_retry=0.05, last_retry=10)
    loop = asyncio.get_running_loop()
    queue.add("a")
    waits = []
    for _ in range(4):
        await take(queue)
        failed_at = loop.time()
        queue.done("a", failed=True)
        await until(lambda: len(queue) == 1)
        waits.append(loop.time() - failed_at)
    assert waits[0] >= 0.02
    assert waits[3] >= 0.2, "0.05 s doubled three times, half of it chance"
    await take(queue)
    queue.done("a")
    queue.add("a")
    await take(queue)
    queue.done("a", failed=True)
    again_at = loop.time()
    await until(lambda: len(queue) == 1)
    assert loop.time() - again_at < waits[3] + 0.2, "it had gone well in between"


async def test_a_change_does_not_wait_for_a_retry() -> None:
    queue = WorkQueue(first_retry=1000, last_retry=1000)
    queue.add("a")
    await take(queue)
    queue.done("a", failed=True)
    queue.add("a")
    assert await take(queue) == "a"


async def test_the_earliest_of_several_times_counts() -> None:
    queue = WorkQueue()
    queue.add_after("a", 1000)
    queue.add_after("a", 0.01)
    queue.add_after("a", 500)
    assert await take(queue) == "a"


async def test_what_is_forgotten_does_not_come_back() -> None:
    queue = WorkQueue(first_retry=0.01, last_retry=0.01)
    queue.add_after("a", 0.01)
    queue.forget("a")
    queue.add_after("b", 0.05)
    assert await take(queue) == "b"


async def test_a_thousand_changes_come_at_a_bounded_pace() -> None:
    queue = WorkQueue(per_second=100, burst=10)
    for number in range(30):
        queue.add(str(number))
    began = asyncio.get_running_loop().time()
    for _ in range(30):
        queue.done(await take(queue))
    assert asyncio.get_running_loop().time() - began >= 0.15, "20 beyond the burst, 100 a second"


async def test_who_is_cancelled_while_waiting_its_turn_loses_nothing() -> None:
    queue = WorkQueue(per_second=0.001, burst=1)
    queue.add("a")
    queue.done(await take(queue))
    queue.add("b")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await queue.take()
    assert len(queue) == 1
