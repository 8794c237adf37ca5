"""Wrong keys: an address may send a few of them, and then waits for each answer."""

from __future__ import annotations

import asyncio

import pytest

from waybill.errors import RateLimited
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.wrong_keys import PER_MINUTE, WrongKeys


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def _exhaust(keys: WrongKeys, address: str) -> None:
    for _ in range(PER_MINUTE):
        await keys.count(address)


async def test_too_many_wrong_keys_are_refused_with_the_time_to_wait() -> None:
    clock = Clock()
    keys = WrongKeys(held=0, clock=clock)
    counted = RATE_LIMITED.labels("wrong_keys").value
    await _exhaust(keys, "192.0.2.1")
    with pytest.raises(RateLimited) as refused:
        await keys.count("192.0.2.1")
    assert refused.value.retry_after == 1
    assert RATE_LIMITED.labels("wrong_keys").value == counted + 1
    await keys.count("192.0.2.2")  # is somebody else
    clock.now += 1.001
    await keys.count("192.0.2.1")
    with pytest.raises(RateLimited):
        await keys.count("192.0.2.1")


async def test_answers_above_the_limit_are_held_back_and_only_so_many() -> None:
    keys = WrongKeys(held=600)
    await _exhaust(keys, "192.0.2.1")
    held = [asyncio.create_task(keys.count("192.0.2.1")) for _ in range(500)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):  # there is no room left, so this one is answered at once
        await keys.count("192.0.2.1")
    assert not any(task.done() for task in held)
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    later = asyncio.create_task(keys.count("192.0.2.1"))
    await asyncio.sleep(0)
    assert not later.done(), "those who left have made room"
    later.cancel()
    await asyncio.gather(later, return_exceptions=True)
