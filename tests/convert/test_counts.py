"""Counts are right at once where they are small, and soon where they are large."""

from __future__ import annotations

import asyncio

import pytest

from convert.conftest import put
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.security import Principal
from waybill.storage import LocalStorage
from waybill_convert.service import Conversions
from waybill_convert.status import Status


@pytest.fixture
def changes(db: Database) -> Subscriptions:
    return Subscriptions(db)


@pytest.fixture
def conversions(db: Database, storage: LocalStorage, changes: Subscriptions) -> Conversions:
    return Conversions(db, storage, changes)


async def test_large_numbers_are_counted_now_and_then(
    conversions: Conversions, changes: Subscriptions, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_convert.counts._FEW", 3)
    monkeypatch.setattr("waybill_convert.counts._REST", 1e9)
    monkeypatch.setattr("waybill_convert.counts._LONGEST_REST", 1.0)
    jobs = [(await put(conversions, me)).job.id for _ in range(5)]
    first = await conversions.listing(me.owner)
    assert (first.counts[Status.QUEUED], first.total, first.active_count) == (5, 5, 5)

    await conversions.cancel(me.owner, jobs[0])
    await put(conversions, me)
    await put(conversions, me)
    seen = changes.version(me.owner)
    second = await conversions.listing(me.owner)
    assert second.counts[Status.CANCELLED] == 1, "small numbers are right at once"
    if second.counts[Status.QUEUED] == 5:  # unless the machine was slower than the rest is long
        async with asyncio.timeout(20):
            while changes.version(me.owner) == seen:  # whoever follows is told by itself
                await asyncio.sleep(0.01)
        second = await conversions.listing(me.owner)
    assert second.counts[Status.QUEUED] == 6


async def test_small_numbers_are_right_at_once(conversions: Conversions, me: Principal) -> None:
    for number in range(1, 4):
        await put(conversions, me)
        assert (await conversions.listing(me.owner)).total == number


async def test_many_who_look_at_once_count_once(
    conversions: Conversions, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_convert.counts._FEW", 2)
    for _ in range(4):
        await put(conversions, me)
    listings = await asyncio.gather(*(conversions.listing(me.owner) for _ in range(10)))
    assert {listing.total for listing in listings} == {4}
