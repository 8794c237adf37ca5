"""What is known about every pool's jobs, read from the database every few seconds in every replica.

Autoscalers, statuses and metrics are answered from here: however many ask, the database is asked once. When it does not
answer, that is said at once, because a number that is old would scale a fleet that nobody sees.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Never

import structlog

from waybill.cluster import Informer
from waybill.db import Database
from waybill.db.database import Connection
from waybill.failures import classify, is_database_outage
from waybill.telemetry.metrics import OPERATOR_FIGURES, WORKERS_WANTED
from waybill_engine.backlog import Backlog, read_backlog
from waybill_engine.breaker_control import BreakerStatus, list_breakers
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.pool import WorkerPool
from waybill_operator.pools.spec import InvalidSpec, WorkerPoolSpec, parse

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_SHARE = 0.2
"""The share of the time that reading may take."""
_READ_WITHIN = 30.0
_STALE = 30.0
"""Seconds after which figures say nothing any more, whatever the reason."""
_LONGEST_BREAKERS = 200

Changed = Callable[[str], None]
"""Called with the name of a pool whose figures are others than before."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What the backlog depends on. Pools that ask the same share an answer."""

    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    slots: int
    drain_target: float

    @classmethod
    def of(cls, spec: WorkerPoolSpec) -> _Question:
        target = float(spec.autoscaling.drain_target_seconds)
        return cls(tuple(sorted(spec.queues)), tuple(sorted(spec.kinds)), spec.slots, target)


class FleetFigures:
    def __init__(
        self,
        database: Database,
        pools: Informer,
        prefix: str,
        *,
        interval: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`ready` is asked before the first read, and raises while the database cannot be used."""
        self._database = database
        self._pools = pools
        self._prefix = prefix
        self._interval = interval
        self._clock = clock
        self._ready = ready
        self._by_pool: Mapping[str, PoolFigures] = {}
        self._read_at = float("-inf")
        self._failed: str | None = None
        self._read_once = asyncio.Event()
        self._news = asyncio.Condition()
        self._listeners: list[Changed] = []

    def on_change(self, listener: Changed) -> None:
        self._listeners.append(listener)

    def off_change(self, listener: Changed) -> None:
        self._listeners.remove(listener)

    @property
    def trouble(self) -> str | None:
        if self._failed is not None:
            return self._failed
        if self._read_at > float("-inf") and self._clock() - self._read_at > _STALE + self._interval:
            return f"The pools' jobs have not been counted for {self._clock() - self._read_at:.0f} s."
        return None

    def of(self, pool: str) -> PoolFigures | None:
        """The newest figures of a pool. Ask for `trouble`, too."""
        return self._by_pool.get(pool)

    async def wait_for(self, pools: Sequence[str], within: float) -> None:
        """Wait until these pools have figures, or there is trouble, or the time is over."""

        def known() -> bool:
            return self.trouble is not None or all(one in self._by_pool for one in pools)

        if known():
            return
        try:
            async with asyncio.timeout(within), self._news:
                await self._news.wait_for(known)
        except TimeoutError:
            return

    async def run(self) -> Never:
        await self._pools.wait_until_listed()
        self._pools.on_change(lambda *_: self._pool_changed())
        while True:
            began = self._clock()
            await self._look()
            took = self._clock() - began
            await self._pause(max(self._interval, took / _SHARE - took), took)

    async def _pause(self, seconds: float, took: float) -> None:
        """Until the next read. A pool that is new need not wait as long."""
        self._read_once.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._read_once.wait()
        except TimeoutError:
            return
        await asyncio.sleep(min(0.2 + took / _SHARE, seconds))

    def _pool_changed(self) -> None:
        if any(name not in self._by_pool for name in self._pools.objects):
            self._read_once.set()

    async def _look(self) -> None:
        began = self._clock()
        try:
            async with asyncio.timeout(_READ_WITHIN):
                if self._ready is not None:
                    await self._ready()
                    self._ready = None
                found = await self._read()
        except Exception as error:  # noqa: BLE001 - told, and tried again
            OPERATOR_FIGURES.labels("failed").observe(self._clock() - began)
            understood = classify(error)
            # Statuses and autoscalers show this to more people than may know where the database is.
            trouble = "The database does not answer." if is_database_outage(error) else understood.message
            if self._failed != trouble:
                log.warning("backlog_not_read", error=understood.message)
            self._failed = trouble
            WORKERS_WANTED.replace({})
            await self._tell(list(self._by_pool))
            return
        OPERATOR_FIGURES.labels("ok").observe(self._clock() - began)
        if self._failed is not None:
            log.info("backlog_read_again")
        had_failed, self._failed, self._read_at = self._failed is not None, None, self._clock()
        changed = [
            name
            for name in {*found, *self._by_pool}
            if had_failed or not _same(found.get(name), self._by_pool.get(name))
        ]
        self._by_pool = found
        WORKERS_WANTED.replace({(name,): one.wanted for name, one in found.items()})
        await self._tell(changed)

    async def _tell(self, changed: Sequence[str]) -> None:
        for listener in list(self._listeners):
            for name in changed:
                listener(name)
        async with self._news:
            self._news.notify_all()

    async def _read(self) -> Mapping[str, PoolFigures]:
        specs = dict(self._specs())
        if not specs:
            return {}
        at = datetime.now(UTC)
        async with self._database.hot() as connection:
            answers = {question: await _ask(connection, question) for question in {*map(_Question.of, specs.values())}}
            breakers = await list_breakers(connection)
        return {
            name: _figures(answers[_Question.of(spec)], _breakers_text(breakers, spec.kinds), at)
            for name, spec in specs.items()
        }

    def _specs(self) -> list[tuple[str, WorkerPoolSpec]]:
        found = []
        for name, body in self._pools.objects.items():
            pool = WorkerPool(body)
            if not pool.is_of(self._prefix):
                continue
            try:
                found.append((name, parse(pool.spec)))
            except InvalidSpec:
                continue  # its status says so
        return found


async def _ask(connection: Connection, question: _Question) -> Backlog:
    return await read_backlog(
        connection, question.queues, question.kinds, slots=question.slots, drain_target=question.drain_target
    )


def _figures(backlog: Backlog, breakers: str, at: datetime) -> PoolFigures:
    return PoolFigures(
        wanted=backlog.wanted,
        queued=backlog.queued,
        running=backlog.running,
        oldest=backlog.oldest,
        seconds_to_drain=backlog.seconds_to_drain,
        breakers=breakers,
        at=at,
    )


def _breakers_text(breakers: Sequence[BreakerStatus], kinds: Sequence[str]) -> str:
    """Those that hold jobs of these kinds back, such as `gateway open`; or `closed`."""
    held = [
        f"{one.name} {one.state.value.replace('_', '-')}"
        for one in breakers
        if one.state.value != "closed" and (not kinds or set(kinds) & set(one.kinds or ()))
    ]
    text = ", ".join(held) or "closed"
    return text if len(text) <= _LONGEST_BREAKERS else f"{text[: _LONGEST_BREAKERS - 1]}…"


def _same(one: PoolFigures | None, other: PoolFigures | None) -> bool:
    if one is None or other is None:
        return one is other
    return replace(one, at=other.at) == other
