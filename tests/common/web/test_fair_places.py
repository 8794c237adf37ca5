"""Places: nobody waits behind forty requests of somebody else, and what waits is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.patience import until
from waybill.errors import RateLimited
from waybill.web.fair_places import FairPlaces, Overloaded


class Room:
    """Places whose work ends when the test says so."""

    def __init__(self, places: int, *, per_owner: int = 40, waiting: int = 1000) -> None:
        self.places = FairPlaces(places, waiting_per_owner=per_owner, waiting=waiting)
        self.inside: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Room]:
        async with asyncio.TaskGroup() as group:
            self._group = group
            yield self
            while self.inside or self.places.waiting:
                for name in list(self.inside):
                    await self.end(name)

    def ask(self, owner: str, name: str) -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()
        return self._group.create_task(self._work(owner, name))

    async def _work(self, owner: str, name: str) -> None:
        async with self.places.take(owner):
            self.inside.append(name)
            await self._ends[name].wait()
            self.inside.remove(name)

    async def end(self, name: str) -> None:
        """End a piece of work, and wait until the next one has begun."""
        self._ends[name].set()
        while name in self.inside:
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_newcomer_finds_a_place_beside_forty_of_another() -> None:
    async with Room(2).open() as room:
        for number in range(40):
            room.ask("many", f"many {number}")
        room.ask("one", "one")
        await until(lambda: "one" in room.inside)
        assert room.inside == ["many 0", "one"]


async def test_owners_take_turns() -> None:
    async with Room(1).open() as room:
        for number in range(3):
            room.ask("a", f"a{number}")
        for number in range(3):
            room.ask("b", f"b{number}")
        order = []
        await until(lambda: bool(room.inside))
        while room.inside:
            order += room.inside
            await room.end(room.inside[0])
        assert order == ["a0", "a1", "b0", "a2", "b1", "b2"]


async def test_who_leaves_is_not_served_and_holds_nobody_up() -> None:
    async with Room(1).open() as room:
        room.ask("a", "a0")
        leaving = [room.ask("a", f"gone {number}") for number in range(5)]
        room.ask("b", "b0")
        await until(lambda: room.places.waiting == 6)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        assert room.places.waiting == 1
        await room.end("a0")
        assert room.inside == ["b0"]


async def test_who_leaves_as_its_turn_comes_gives_the_place_back() -> None:
    async with Room(1).open() as room:
        room.ask("a", "a0")
        leaving, _ = room.ask("b", "gone"), room.ask("c", "c0")
        await until(lambda: room.places.waiting == 2)
        room._ends["a0"].set()
        while "a0" in room.inside:
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await until(lambda: room.inside == ["c0"])


async def test_what_waits_is_bounded_for_each_and_for_all() -> None:
    async with Room(1, per_owner=2, waiting=3).open() as room:
        for number in range(3):
            room.ask("a", f"a{number}")
        room.ask("b", "b0")
        await until(lambda: room.places.waiting == 3)
        with pytest.raises(RateLimited) as many:
            async with room.places.take("a"):
                pass
        with pytest.raises(Overloaded) as busy:
            async with room.places.take("c"):
                pass
        assert not isinstance(many.value, Overloaded)
        assert busy.value.status == 503
        assert all(refused.value.retry_after and refused.value.retry_after >= 1 for refused in (many, busy))
        assert room.places.waiting == 3
