"""Random histories: the janitor and a simple model of what must be left, side by side.

Nothing active, pinned or under hold is ever removed, everything past its time is, and a second run changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.clock import Clock
from support.engine import FINAL
from support.janitor import DAY, Janitor, document, janitor, result_key, status, stored_keys
from waybill import retention
from waybill.changes import Subscriptions
from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict
from waybill.storage import LocalStorage, upload_key
from waybill_convert.download_service import Downloads
from waybill_convert.repository import conversions
from waybill_convert.service import Conversions

EXAMPLES = int(os.environ.get("WAYBILL_TEST_EXAMPLES", "8"))
TENANTS = ("acme", "brief", "suspect")
LIMITS = {"acme": (7.0, 30.0, 90.0), "brief": (1.0, 2.0, 20.0), "suspect": (7.0, 30.0, 90.0)}
STATES = ("scheduled", "queued", "running", *FINAL)


@dataclass
class Document:
    """One conversion, as the model knows it. Times are days."""

    id: uuid.UUID
    tenant: str
    state: str
    ended: float
    pinned: bool
    listed: bool = True
    source: bool = True
    results: bool = False
    unpublished: bool = False
    downloaded: bool = False

    @property
    def keys(self) -> set[str]:
        keys = {upload_key(self.id)} if self.source else set()
        if self.results:
            keys |= {result_key(self.id, 1, name) for name in ("xml", "provenance.json")}
        return keys | ({result_key(self.id, 9, "xml")} if self.unpublished else set())

    @property
    def status(self) -> str | None:
        if not self.listed:
            return None
        if self.state == "succeeded":
            return "complete" if self.results else "expired"
        words = {"scheduled": "queued", "running": "processing", "dead_letter": "failed"}
        return words.get(self.state, self.state)

    def clean(self, now: float, held: set[str]) -> None:
        """What a run of the janitor must make of it."""
        if self.state not in FINAL or self.pinned or self.tenant in held:
            return
        source, results, job = LIMITS[self.tenant]
        age = now - self.ended
        self.source &= age < source
        # The tenant `brief` has its results removed once they were downloaded.
        self.results &= age < results and not (self.downloaded and self.tenant == "brief")
        self.listed &= age < job or self.source or self.results
        self.unpublished &= self.listed and age < 1


@dataclass
class World:
    db: Database
    hot: Connection
    clock: Clock
    storage: LocalStorage
    documents: list[Document] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    now: float = 0.0

    @property
    def janitor(self) -> Janitor:
        return janitor(self.db, self.storage)

    @property
    def conversions(self) -> Conversions:
        return Conversions(self.db, self.storage, Subscriptions(self.db))

    async def begin(self) -> None:
        await self.hot.execute(
            "TRUNCATE jobs, job_events, job_artefacts, conversions, garbage, tenants, retention_ages, janitor_places,"
            " janitor_runs"
        )
        await retention.set_ages(self.hot, "brief", {"documents": 1, "results": 2, "downloads": 0, "jobs": 20})
        await self.wait(2.0)  # files carry the real time: all are older than the grace period from now on

    async def make(self, wanted: list[tuple[str, str, bool, bool]]) -> None:
        for tenant, state, pinned, unpublished in wanted:
            job = await document(self.hot, self.storage, state, tenant=tenant, pinned=pinned, unpublished=unpublished)
            self.documents.append(
                Document(job, tenant, state, self.now, pinned, results=state == "succeeded", unpublished=unpublished)
            )

    async def wait(self, days: float) -> None:
        await self.clock.forward(days * DAY)
        self.now += days

    async def pin(self, number: int) -> None:
        for one in self.some(number):
            try:
                view = await self.conversions.pin(f"tenant:{one.tenant}", one.id, pinned=not one.pinned)
            except Conflict:
                assert one.status == "expired"
            else:
                one.pinned = not one.pinned
                assert view.pinned == one.pinned

    async def hold(self, number: int) -> None:
        tenant = TENANTS[number % 3]
        if tenant in self.held:
            assert await retention.release(self.hot, tenant)
        else:
            await retention.hold(self.hot, tenant)
        self.held ^= {tenant}

    async def download(self, number: int) -> None:
        for one in self.some(number):
            if one.results:
                await Downloads(self.db).note_downloaded([one.id])
                one.downloaded = True
        await self.wait(0.05)

    async def upload_again(self, number: int) -> None:
        for one in self.some(number):
            if one.state == "succeeded" and one.results:
                await conversions.reuse(self.hot, one.id)
                one.ended, one.downloaded = self.now, False

    async def delete(self, number: int) -> None:
        for one in self.some(number):
            try:
                await self.conversions.delete(f"tenant:{one.tenant}", one.id)
            except Conflict:
                assert one.state == "running" or one.tenant in self.held
            else:
                one.listed = one.source = one.results = one.unpublished = False

    def some(self, number: int) -> list[Document]:
        there = [one for one in self.documents if one.listed]
        return there[number % len(there) :][:2] if there else []

    async def clean(self) -> None:
        planned = await self.janitor.would()
        done = await self.janitor.clean()
        assert planned.keys() - {"durations", "dead_letters", "orphans"} <= done.keys()
        for one in self.documents:
            one.clean(self.now, self.held)
        await self.compare()
        before = await self.everything()
        assert await self.janitor.clean() == {}, "a second run finds nothing to do"
        assert await self.everything() == before

    async def compare(self) -> None:
        expected = set().union(*(one.keys for one in self.documents))
        assert await stored_keys(self.storage) == expected
        assert [await status(self.hot, one.id) for one in self.documents] == [one.status for one in self.documents]

    async def everything(self) -> list[Any]:
        tables = ("jobs", "job_events", "job_artefacts", "conversions", "garbage", "tenants")
        rows = [await self.hot.fetch(f"SELECT {table}::text FROM {table} ORDER BY 1") for table in tables]
        return [rows, await stored_keys(self.storage)]


documents = st.lists(
    st.tuples(st.sampled_from(TENANTS), st.sampled_from(STATES), st.sampled_from([False] * 4 + [True]), st.booleans()),
    min_size=1,
    max_size=8,
)
numbers = st.integers(0, 11)
steps = st.one_of(
    st.tuples(st.just("make"), documents),
    st.tuples(st.just("wait"), st.sampled_from([0.413, 3.337, 11.117, 31.313, 77.773])),
    *(st.tuples(st.just(what), numbers) for what in ("pin", "hold", "download", "upload_again", "delete")),
)
histories = st.lists(st.lists(steps, max_size=4), min_size=1, max_size=4)


def test_what_is_kept_stays_what_is_past_its_time_goes_and_twice_is_once(database_url: str, tmp_path: Path) -> None:
    folders = iter(range(1_000_000))
    with asyncio.Runner() as runner:
        db = Database(DatabaseUrl(database_url))
        hot = runner.run(asyncpg.connect(database_url))

        async def live(first: Any, history: list[list[tuple[str, Any]]]) -> None:
            world = World(db, hot, Clock(database_url), LocalStorage(tmp_path / str(next(folders))))
            await world.begin()
            await world.make(first)
            for act in history:
                for what, argument in act:
                    await getattr(world, what)(argument)
                await world.clean()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(first=documents, history=histories)
        def explore(first: Any, history: list[list[tuple[str, Any]]]) -> None:
            runner.run(live(first, history))

        try:
            explore()
        finally:
            runner.run(hot.close())
            runner.run(db.close())
