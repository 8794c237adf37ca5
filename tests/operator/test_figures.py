"""What the operator knows about pools, from a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.cluster_server import ClusterServer
from support.engine import OTHER, WORK, one_job, some_jobs
from support.patience import until
from waybill import background_tasks
from waybill.cluster import ClusterApi, Informer
from waybill.cluster.resources import WORKER_POOLS
from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.errors import WaybillError
from waybill.telemetry.metrics import WORKERS_WANTED
from waybill_engine import breaker
from waybill_engine.breaker_control import trip
from waybill_operator.figures import FleetFigures


@asynccontextmanager
async def counting(api: ClusterApi, database: Database, interval: float = 0.1) -> AsyncIterator[FleetFigures]:
    pools = Informer(api, WORKER_POOLS, "default")
    figures = FleetFigures(database, pools, "rel-waybill", interval=interval)
    async with background_tasks.running(pools.run(), "pools"), background_tasks.running(figures.run(), "figures"):
        yield figures


async def put_pool(cluster: ClusterServer, name: str, **spec: object) -> None:
    await cluster.put(WORKER_POOLS, {"metadata": {"name": name}, "spec": spec})


async def test_every_pool_has_the_figures_of_what_it_serves(
    cluster: ClusterServer, api: ClusterApi, db: Database
) -> None:
    await put_pool(cluster, "all", concurrency=10)
    await put_pool(cluster, "others", kinds=["other"], concurrency=1)
    await put_pool(cluster, "broken", concurrency=0)
    async with db.hot() as connection:
        await some_jobs(connection, 30)
        await one_job(connection, OTHER)
    async with counting(api, db) as figures:
        await figures.wait_for(["all", "others"], 30)
        everything, others = figures.of("all"), figures.of("others")
        assert everything is not None
        assert others is not None
        assert (everything.queued, others.queued) == (31, 1)
        assert everything.wanted >= 1
        assert everything.oldest is not None
        assert everything.breakers == "closed"
        assert figures.of("broken") is None
        assert dict(WORKERS_WANTED.series()).keys() == {("all",), ("others",)}


async def test_a_breaker_that_is_open_is_named_where_it_holds_jobs_back(
    cluster: ClusterServer, api: ClusterApi, db: Database
) -> None:
    await put_pool(cluster, "works", kinds=["work"])
    await put_pool(cluster, "others", kinds=["other"])
    async with db.hot() as connection:
        await one_job(connection, WORK)
        await breaker.register_kinds(connection, {"work": ["gateway"], "other": []})
        await trip(connection, "gateway", "a test")
    async with counting(api, db) as figures:
        await figures.wait_for(["works", "others"], 30)
        works, others = figures.of("works"), figures.of("others")
        assert works is not None
        assert others is not None
        assert (works.breakers, others.breakers) == ("gateway open", "closed")


async def test_a_new_pool_is_counted_soon_and_whoever_asks_waits_for_it(
    cluster: ClusterServer, api: ClusterApi, db: Database
) -> None:
    await put_pool(cluster, "one")
    async with counting(api, db, interval=300) as figures:
        await figures.wait_for(["one"], 30)
        await put_pool(cluster, "new")
        await figures.wait_for(["new"], 30)
        assert figures.of("new") is not None


async def test_only_changes_are_told(cluster: ClusterServer, api: ClusterApi, db: Database) -> None:
    await put_pool(cluster, "one")
    told: list[str] = []
    async with counting(api, db, interval=0.05) as figures:
        figures.on_change(told.append)
        await until(lambda: told == ["one"])
        await asyncio.sleep(0.4)
        assert told == ["one"]
        async with db.hot() as connection:
            await one_job(connection)
        await until(lambda: len(told) > 1)


async def test_while_the_database_is_away_that_is_said_and_the_gauge_is_gone(
    cluster: ClusterServer, api: ClusterApi, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_pool(cluster, "one")
    away = Database(DatabaseUrl("postgresql://nobody@127.0.0.1:1/none"), patience=2)
    async with counting(api, db, interval=0.05) as figures:
        await figures.wait_for(["one"], 30)
        assert str(figures.trouble) == "None"
        monkeypatch.setattr(figures, "_database", away)
        await until(lambda: figures.trouble is not None)
        assert figures.trouble == "The database does not answer.", "not where it is"
        assert list(WORKERS_WANTED.series()) == []
        assert figures.of("one") is not None, "what was known last is shown in the status"
        monkeypatch.setattr(figures, "_database", db)
        await until(lambda: figures.trouble is None)
    await away.close()


async def test_figures_that_nobody_refreshes_are_not_trusted(
    cluster: ClusterServer, api: ClusterApi, db: Database
) -> None:
    await put_pool(cluster, "one")
    pools = Informer(api, WORKER_POOLS, "default")
    now = 1000.0
    figures = FleetFigures(db, pools, "rel-waybill", interval=5, clock=lambda: now)
    async with background_tasks.running(pools.run(), "pools"):
        async with background_tasks.running(figures.run(), "figures"):
            await figures.wait_for(["one"], 30)
        assert figures.trouble is None
        now += 60
        assert "have not been counted for 60 s" in str(figures.trouble)


async def test_a_schema_that_is_not_ours_is_an_outage(cluster: ClusterServer, api: ClusterApi, db: Database) -> None:
    async def not_ready() -> None:
        raise WaybillError("The schema is being migrated.")

    await put_pool(cluster, "one")
    pools = Informer(api, WORKER_POOLS, "default")
    figures = FleetFigures(db, pools, "rel-waybill", interval=0.05, ready=not_ready)
    async with background_tasks.running(pools.run(), "pools"), background_tasks.running(figures.run(), "figures"):
        await until(lambda: figures.trouble == "The schema is being migrated.")
