"""A simulation of the autoscaler: jobs arrive, workers run them, and an HPA looks every 15 seconds and starts or stops
workers, by the time to drain or by processor time.

It is discrete: time goes from one event to the next, and everything random comes from a seed. The HPA does what
Kubernetes documents: tolerance, at most doubling (or four more) in 15 s, and the highest of the last five minutes'
recommendations on the way down. Workers take time to start, and finish what they run before they stop. Documents to
convert share the gateways' parsers, and are held back by the cap on gateway calls.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean, quantiles


@dataclass(frozen=True)
class Pool:
    """The defaults of a WorkerPool."""

    slots: int = 10
    least: int = 1
    most: int = 10
    drain_target: float = 60.0
    start_up: tuple[float, float] = (15.0, 30.0)
    """Seconds from the decision until a new worker claims: scheduling, pulling, starting."""


@dataclass(frozen=True)
class Hpa:
    """The defaults of a HorizontalPodAutoscaler."""

    sync: float = 15.0
    tolerance: float = 0.1
    down_window: float = 300.0
    """Seconds for which the highest recommendation counts on the way down."""
    up_pods: int = 4
    up_times: float = 2.0


@dataclass(frozen=True)
class Gateway:
    """What documents to convert are parsed by. Without one, a job is busy by itself."""

    parsers: int
    cap: int
    """How many jobs may run at once (`WAYBILL_GATEWAY_CALLS`)."""
    beside: float = 0.05
    """Seconds of a job's time beside the parsing: claim, storage, commits."""


@dataclass(frozen=True)
class Cpu:
    """Scaling by processor time instead: how busy a pod with all slots in use looks, and how busy it should."""

    full: float = 1.0
    target: float = 0.8
    window: float = 30.0
    """Seconds that the metrics server looks back over."""


@dataclass(slots=True)
class _Worker:
    ready_at: float
    running: int = 0
    leaving: bool = False
    busy: float = 0.0
    """Seconds of slots used so far."""
    counted_at: float = 0.0
    looks: deque[tuple[float, float]] = field(default_factory=deque)
    """When the metrics server looked, and how many seconds had been used by then."""

    def count(self, now: float) -> None:
        self.busy += self.running * (now - self.counted_at)
        self.counted_at = now


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    queued: int
    running: int
    workers: int
    wanted: int


@dataclass
class Outcome:
    """What became of it."""

    moments: list[Moment]
    waits: list[float]
    """Seconds each job waited until it was claimed."""
    provided: float
    """Seconds of slots, from the decision to start a worker until it was gone."""
    used: float
    emptied: list[float]
    """When the queue became empty."""

    @property
    def over_provisioning(self) -> float:
        return self.provided / self.used

    @property
    def median_wait(self) -> float:
        return quantiles(self.waits, n=2)[0]

    @property
    def slow_wait(self) -> float:
        """The wait that one in twenty exceeds."""
        return quantiles(self.waits, n=20)[-1]

    @property
    def most_workers(self) -> int:
        return max(moment.workers for moment in self.moments)

    def drained_after(self, arrival: float) -> float:
        """Seconds from then until the queue was empty."""
        return next(at for at in self.emptied if at > arrival) - arrival

    def flaps(self, within: float = 600.0) -> int:
        """How often the number of workers fell and then rose within so many seconds."""
        changes = [
            (after.at, after.workers - before.workers)
            for before, after in itertools.pairwise(self.moments)
            if after.workers != before.workers
        ]
        return sum(
            earlier[1] < 0 < later[1] and later[0] - earlier[0] <= within
            for earlier, later in itertools.pairwise(changes)
        )


def slots_wanted(queued: int, running: int, seconds: float, target: float, cap: float = math.inf) -> float:
    """As `waybill_backlog` says it, for one kind."""
    return running + max(min(queued * seconds / target, cap - running), 0.0)


def workers_wanted(slots: float, per_worker: int) -> int:
    return math.ceil(round(slots, 6) / per_worker)


class Simulation:
    _ENOUGH = 10
    _WINDOW = 900.0

    def __init__(
        self,
        arrivals: Iterable[tuple[float, float]],
        until: float,
        *,
        pool: Pool | None = None,
        hpa: Hpa | None = None,
        gateway: Gateway | None = None,
        cpu: Cpu | None = None,
        seed: int = 1,
    ) -> None:
        """`arrivals` are times and how long each job takes (without a wait for a parser)."""
        self._until = until
        self._pool, self._hpa = pool or Pool(), hpa or Hpa()
        self._gateway, self._cpu = gateway, cpu
        self._chance = random.Random(seed)
        self._now = 0.0
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._queue: deque[tuple[float, float]] = deque()
        self._running = 0
        self._line: deque[tuple[float, _Worker, float]] = deque()
        """Jobs that wait for a parser: seconds to parse, their worker, since when they run."""
        self._parsing = 0
        self._ended: deque[tuple[float, float]] = deque()
        """When jobs ended of late, and how long each took; `_took` is their sum."""
        self._took = 0.0
        self._workers = [_Worker(ready_at=0.0) for _ in range(self._pool.least)]
        self._recommended: deque[tuple[float, int]] = deque()
        self._outcome = Outcome([], [], 0.0, 0.0, [])
        for at, seconds in arrivals:
            self._at(at, lambda at=at, seconds=seconds: self._arrive(at, seconds))  # type: ignore[misc]
        self._at(self._hpa.sync, self._look)

    def run(self) -> Outcome:
        while self._events and self._events[0][0] <= self._until:
            now, _, happen = heapq.heappop(self._events)
            self._outcome.provided += len(self._workers) * self._pool.slots * (now - self._now)
            self._outcome.used += self._running * (now - self._now)
            self._now = now
            happen()
        return self._outcome

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what))

    # Jobs

    def _arrive(self, at: float, seconds: float) -> None:
        self._queue.append((at, seconds))
        self._claim()

    def _claim(self) -> None:
        had = bool(self._queue)
        cap = self._gateway.cap if self._gateway else math.inf
        while self._queue and self._running < cap:
            free = [one for one in self._workers if not one.leaving and one.ready_at <= self._now]
            worker = min(free, key=lambda one: one.running, default=None)
            if worker is None or worker.running >= self._pool.slots:
                break
            at, seconds = self._queue.popleft()
            self._outcome.waits.append(self._now - at)
            worker.count(self._now)
            worker.running += 1
            self._running += 1
            if self._gateway is None:
                self._end_in(seconds, worker, self._now)
            else:
                self._line.append((seconds, worker, self._now))
                self._parse()
        if had and not self._queue:
            self._outcome.emptied.append(self._now)

    def _parse(self) -> None:
        assert self._gateway is not None
        while self._line and self._parsing < self._gateway.parsers:
            seconds, worker, since = self._line.popleft()
            self._parsing += 1
            self._at(self._now + seconds, lambda worker=worker, since=since: self._parsed(worker, since))  # type: ignore[misc]

    def _parsed(self, worker: _Worker, since: float) -> None:
        assert self._gateway is not None
        self._parsing -= 1
        self._end_in(self._gateway.beside, worker, since)
        self._parse()

    def _end_in(self, seconds: float, worker: _Worker, since: float) -> None:
        self._at(self._now + seconds, lambda: self._end(worker, since))

    def _end(self, worker: _Worker, since: float) -> None:
        worker.count(self._now)
        worker.running -= 1
        self._running -= 1
        self._ended.append((self._now, self._now - since))
        self._took += self._now - since
        if worker.leaving and not worker.running:
            self._workers.remove(worker)
        self._claim()

    # The autoscaler

    def _look(self) -> None:
        self._at(self._now + self._hpa.sync, self._look)
        here = [one for one in self._workers if not one.leaving]
        wanted = self._wanted()
        asked = wanted if self._cpu is None else self._by_cpu(self._cpu, here)
        now = self._decide(len(here), asked)
        for _ in range(now - len(here)):
            self._start()
        # Not ready yet first, then the idle: the operator says which are cheap to delete.
        by_cost = sorted(here, key=lambda one: (one.ready_at <= self._now, one.running))
        for one in by_cost[: max(len(here) - now, 0)]:
            one.leaving = True
            if not one.running:
                self._workers.remove(one)
        self._outcome.moments.append(Moment(self._now, len(self._queue), self._running, now, wanted))

    def _wanted(self) -> int:
        while self._ended and self._ended[0][0] < self._now - self._WINDOW:
            self._took -= self._ended.popleft()[1]
        seconds = self._took / len(self._ended) if len(self._ended) >= self._ENOUGH else 1.0
        cap = self._gateway.cap if self._gateway else math.inf
        slots = slots_wanted(len(self._queue), self._running, seconds, self._pool.drain_target, cap)
        return workers_wanted(slots, self._pool.slots)

    def _decide(self, present: int, asked: int) -> int:
        """How many workers there shall be, as an HPA with a target of one per worker decides."""
        if self._cpu is None and present and abs(asked / present - 1) <= self._hpa.tolerance:
            asked = present
        asked = min(max(asked, self._pool.least), self._pool.most)
        self._recommended.append((self._now, asked))
        while self._recommended[0][0] < self._now - self._hpa.down_window:
            self._recommended.popleft()
        if asked < present:
            return min(max(one for _, one in self._recommended), present)
        return min(asked, max(present + self._hpa.up_pods, math.ceil(present * self._hpa.up_times)))

    def _by_cpu(self, cpu: Cpu, here: Sequence[_Worker]) -> int:
        ready = [one for one in here if one.ready_at + cpu.window <= self._now]
        shares = []
        for one in ready:
            one.count(self._now)
            one.looks.append((self._now, one.busy))
            while len(one.looks) > 1 and one.looks[1][0] <= self._now - cpu.window:
                one.looks.popleft()
            since, busy = one.looks[0]
            if self._now > since:
                shares.append(cpu.full * (one.busy - busy) / (self._now - since) / self._pool.slots)
        if not shares:
            return len(here)
        ratio = mean(shares) / cpu.target
        if ratio > 1 + self._hpa.tolerance:  # those that are not ready count as idle on the way up
            ratio = sum(shares) / len(here) / cpu.target
            return max(math.ceil(ratio * len(here)), len(here))
        return len(here) if ratio >= 1 - self._hpa.tolerance else math.ceil(ratio * len(shares))

    def _start(self) -> None:
        ready_at = self._now + self._chance.uniform(*self._pool.start_up)
        self._workers.append(_Worker(ready_at=ready_at, counted_at=ready_at))
        self._at(ready_at, self._claim)
