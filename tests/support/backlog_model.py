"""A plain model of the backlog, and databases full of jobs to compare it with `waybill_backlog`."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from waybill.db.database import Connection
from waybill_engine.rates import _numbers
from waybill_engine.rules import Pace

QUEUES = ("default", "night", "paused")
KINDS = ("convert", "extract", "send")
TENANTS = ("acme", "globex", "initech", "umbrella")
DEPENDENCY = {"convert": "gateway", "send": "receiver"}

_CLEAR = """
TRUNCATE jobs, workers, queues, caps, rates, kinds, breakers, finished_by_minute, missed_turns, schedules, samples
"""

_JOBS = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, isolate, lease_owner, run_at,
                  pending_children, parked_for)
SELECT gen_random_uuid(), tenant, tenant, kind, queue,
       CASE WHEN how = 'running' THEN 'running' WHEN how IN ('queued', 'suspect') THEN 'queued' ELSE 'scheduled' END,
       '{}', 60, how = 'suspect', CASE WHEN how = 'running' THEN $5::uuid END,
       CASE how WHEN 'later' THEN now() + interval '1 hour' WHEN 'due' THEN now() - interval '1 second'
                WHEN 'children' THEN 'infinity' WHEN 'parked' THEN 'infinity' ELSE now() END,
       CASE WHEN how = 'children' THEN 1 ELSE 0 END, CASE WHEN how = 'parked' THEN now() END
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS new (queue, kind, tenant, how)
"""

_WORKER = """
INSERT INTO workers (id, name, host, pid, version, queues, kinds, concurrency, isolating, state, lease_expires_at)
VALUES (gen_random_uuid(), 'w', 'here', 1, 'test', $1, $2, $3, $4, $5, now() + $6 * interval '1 second') RETURNING id
"""

_BREAKER = """
INSERT INTO breakers (name, state, open_until, cooldown_until)
VALUES ($1, $2, now() + $3 * interval '1 second', now() + $4 * interval '1 second')
"""

_RATE = """
INSERT INTO rates (tenant, kind, most, seconds, burst, spacing, paid_up_to)
VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 second')
"""

_MINUTE = """
INSERT INTO finished_by_minute
VALUES (date_trunc('minute', now()) - $1 * interval '1 minute', $2, 'succeeded', $3, 0, $4)
"""


@dataclass
class Rate:
    pace: Pace
    paid: float
    """Seconds from now that its starts have paid for."""

    @property
    def spacing(self) -> int:
        return _numbers(self.pace)[3]

    @property
    def per_second(self) -> float:
        return 1e6 / self.spacing

    @property
    def shut(self) -> bool:
        return self.paid - (self.pace.at_once - 1) * self.spacing / 1e6 > 0


@dataclass
class World:
    jobs: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """How many jobs of a queue, kind and tenant are `queued`, `suspect`, `running`, `due`, `later`, and so on."""
    caps: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    rates: dict[tuple[str | None, str | None], Rate] = field(default_factory=dict)
    breakers: dict[str, tuple[str, float | None, float | None]] = field(default_factory=dict)
    ended: list[tuple[int, str, int, float]] = field(default_factory=list)
    """Minutes ago, kind, jobs, seconds."""
    workers: list[tuple[list[str], list[str], int, bool, str, float]] = field(default_factory=list)

    @classmethod
    def made_by(cls, chance: random.Random) -> World:
        def maybe(share: float) -> bool:
            return chance.random() < share

        world = cls()
        for queue, kind, tenant in itertools.product(QUEUES, KINDS, TENANTS):
            for how, share, most in (
                ("queued", 0.4, 60),
                ("running", 0.25, 6),
                ("suspect", 0.05, 2),
                ("due", 0.1, 5),
                ("later", 0.1, 5),
                ("children", 0.05, 2),
                ("parked", 0.05, 2),
            ):
                if maybe(share):
                    world.jobs[queue, kind, tenant, how] = chance.randint(1, most)
        somebody = [*itertools.product((None, *TENANTS), (None, *KINDS))][1:]
        world.caps = {one: chance.choice((0, 1, 3, 8, 20)) for one in somebody if maybe(0.2)}
        world.rates = {
            one: Rate(Pace(chance.choice((1, 5, 60)), chance.choice((1.0, 60.0, 3600.0))), chance.choice((-5.0, 7.0)))
            for one in somebody
            if maybe(0.1)
        }
        for name in DEPENDENCY.values():
            if maybe(0.3):
                state = chance.choice(("closed", "open", "half_open"))
                until = chance.choice((None, -1.0, 30.0)) if state == "open" else None
                world.breakers[name] = (state, until, chance.choice((None, None, -1.0, 20.0)))
        for kind in KINDS:
            if maybe(0.8):
                world.ended += [
                    (ago, kind, jobs, jobs * chance.choice((0.0, 0.05, 2.0, 30.0)))
                    for ago in (1, 4, 20, 600, 1500)
                    if maybe(0.5)
                    for jobs in [chance.randint(1, 15)]
                ]
        for _ in range(chance.randint(0, 3)):
            state = chance.choice(("active", "active", "draining", "stopped"))
            expires = chance.choice((60.0, 60.0, -1.0))
            served = chance.sample(QUEUES, 2), chance.sample(KINDS, 2)
            world.workers.append((*served, chance.randint(1, 20), maybe(0.2), state, expires))
        return world

    async def build(self, connection: Connection) -> None:
        """Make the database hold just this."""
        await connection.execute(_CLEAR)
        await connection.execute("INSERT INTO queues (name, paused_at) VALUES ('paused', now()), ('default', NULL)")
        owner = await connection.fetchval(_WORKER, ["x"], ["x"], 1, False, "active", 60.0)
        jobs = list(self.jobs.elements())
        await connection.execute(_JOBS, *([list(one) for one in zip(*jobs, strict=True)] or [[]] * 4), owner)
        await connection.executemany(_WORKER, self.workers)
        await connection.executemany(
            "INSERT INTO caps (tenant, kind, most) VALUES ($1, $2, $3)",
            [(*one, most) for one, most in self.caps.items()],
        )
        await connection.executemany(
            _RATE,
            [(*one, *_numbers(rate.pace), rate.paid) for one, rate in self.rates.items()],
        )
        await connection.executemany(
            "INSERT INTO kinds (name, dependency, dependencies) VALUES ($1, $2, $3)",
            [
                ("convert", "gateway", ["gateway"]),
                ("extract", None, None),
                ("send", "receiver", None),  # as release 0.1.0 writes it
            ],
        )
        await connection.executemany(_BREAKER, [(name, *facts) for name, facts in self.breakers.items()])
        await connection.executemany(_MINUTE, self.ended)

    # What the function says, said in another way.

    def seconds(self, kind: str, default: float) -> float:
        for within, enough in ((15, 10), (1440, 1)):
            ended = [(jobs, seconds) for ago, of, jobs, seconds in self.ended if of == kind and ago < within]
            if (jobs := sum(jobs for jobs, _ in ended)) >= enough:
                return sum(seconds for _, seconds in ended) / jobs
        return default

    def calls(self, kind: str, probes: int) -> int | None:
        """How many jobs of a kind its breaker lets through; None if it does not limit them."""
        state, until, cooling = self.breakers.get(DEPENDENCY.get(kind, ""), ("closed", None, None))
        if cooling is not None and cooling > 0:
            return 0
        if state == "closed":
            return None
        return probes if state == "half_open" or (until is not None and until <= 0) else 0

    def backlog(
        self, queues: tuple[str, ...], kinds: tuple[str, ...], slots: int, target: float, default: float, probes: int
    ) -> dict[str, Any]:
        def asked(queue: str, kind: str) -> bool:
            return queue in (queues or QUEUES) and kind in (kinds or KINDS)

        open_jobs: Counter[tuple[str, str]] = Counter()
        suspects: Counter[tuple[str, str]] = Counter()
        running: Counter[tuple[str, str]] = Counter()
        held: Counter[str] = Counter()
        mine = waiting = 0
        for (queue, kind, tenant, how), jobs in self.jobs.items():
            if how == "running":
                running[kind, tenant] += jobs
                mine += jobs * asked(queue, kind)
            elif not asked(queue, kind):
                continue
            elif how in ("later", "children", "parked"):
                held[{"later": "scheduled", "parked": "sequence"}.get(how, how)] += jobs
            else:
                waiting += jobs
                if queue == "paused":
                    held["queue_paused"] += jobs
                else:
                    (suspects if how == "suspect" else open_jobs)[kind, tenant] += jobs

        def runs(tenant: str | None, kind: str | None) -> list[tuple[str, str]]:
            return [(k, t) for k, t in running if (kind in (None, k)) and (tenant in (None, t))]

        def room(tenant: str | None, kind: str | None) -> float:
            most = self.caps.get((tenant, kind), math.inf)
            return max(most - sum(running[one] for one in runs(tenant, kind)), 0)

        def starts(tenant: str | None, kind: str | None) -> float:
            """How many more jobs per second a rate lets start, beside those that keep the present slots busy."""
            rate = self.rates.get((tenant, kind))
            if rate is None:
                return math.inf
            busy = sum(running[one] / s for one in runs(tenant, kind) if (s := self.seconds(one[0], default)))
            return max(rate.per_second - busy, 0)

        queued = 0
        called_for = mine > 0
        more: dict[tuple[str, str], float] = {}
        work: dict[tuple[str, str], float] = {}
        drains = [0.0]
        for kind, tenant in sorted({*open_jobs, *suspects}):
            jobs, apart = open_jobs[kind, tenant], suspects[kind, tenant]
            seconds, calls = self.seconds(kind, default), self.calls(kind, probes)
            limits = ((tenant, kind), (tenant, None), (None, kind))
            capped = any(room(*one) <= 0 for one in limits)
            called_for = called_for or (not capped and calls != 0)
            if calls is not None:
                held["breaker"] += jobs + apart
            elif capped:
                held["cap"] += jobs + apart
            elif any(one in self.rates and self.rates[one].shut for one in limits):
                held["rate"] += jobs + apart
            else:
                queued += jobs
                held["isolated"] += apart
            more[kind, tenant] = min(
                jobs * seconds / target,
                *(room(*one) for one in limits),
                *(
                    (starts(*one) * seconds if seconds or one not in self.rates else 0.0)
                    for one in limits
                    if one in self.rates
                ),
                math.inf if calls is None else calls,
            )
            if calls is None and 0 not in (self.caps.get(one) for one in limits):
                work[kind, tenant] = jobs * seconds
                drains += [work[kind, tenant] / self.caps[limits[0]]] if limits[0] in self.caps else []
                drains += [jobs / self.rates[limits[0]].per_second] if limits[0] in self.rates else []

        for tenant in TENANTS:
            asks = sum(slots_ for (_, t), slots_ in more.items() if t == tenant)
            pace = sum(n / s for (k, t), n in more.items() if t == tenant and (s := self.seconds(k, default)))
            factor = min(1.0, room(tenant, None) / asks if asks else 1.0, starts(tenant, None) / pace if pace else 1.0)
            for one in more:
                if one[1] == tenant:
                    more[one] *= factor
        total = 0.0
        for kind in KINDS:
            asks = sum(slots_ for (k, _), slots_ in more.items() if k == kind)
            seconds = self.seconds(kind, default)
            pace = starts(None, kind) * seconds if (None, kind) in self.rates else math.inf
            calls = self.calls(kind, probes)
            total += min(asks, room(None, kind), max(pace, 0), math.inf if calls is None else calls)

        for (tenant, kind), cap in self.caps.items():  # type: ignore[assignment]
            if (tenant is None) != (kind is None) and cap:
                drains.append(sum(w for (k, t), w in work.items() if kind in (None, k) and tenant in (None, t)) / cap)
        for (tenant, kind), rate in self.rates.items():  # type: ignore[assignment]
            if (tenant is None) != (kind is None):
                counted = sum(open_jobs[one] for one in work if kind in (None, one[0]) and tenant in (None, one[1]))
                drains.append(counted / rate.per_second)
        present = sum(
            concurrency
            for qs, ks, concurrency, isolating, state, expires in [
                *self.workers,
                (["x"], ["x"], 1, False, "active", 60.0),
            ]
            if state == "active" and expires > 0 and not isolating
            if (not queues or set(qs) & set(queues)) and (not kinds or set(ks) & set(kinds))
        )
        wanted = math.ceil(round(total + mine, 6) / slots)
        all_work = sum(work.values())
        return {
            "wanted": max(wanted, int(called_for)),
            "queued": queued,
            "running": mine,
            "waiting": waiting,
            "held": {reason: jobs for reason, jobs in held.items() if jobs},
            "seconds_to_drain": (
                None if all_work and not present else max(*drains, all_work / present if present else 0.0)
            ),
        }

    def most_slots(self, target: float, default: float, probes: int) -> float:
        """The most slots that all jobs could use under the caps alone: a smallest cut, found by trying all of them."""
        demand: defaultdict[tuple[str, str], float] = defaultdict(float)
        running: Counter[tuple[str, str]] = Counter()
        for (queue, kind, tenant, how), jobs in self.jobs.items():
            if how == "running":
                running[kind, tenant] += jobs
            elif queue != "paused" and how in ("queued", "due") and self.calls(kind, probes) is None:
                demand[kind, tenant] += jobs * self.seconds(kind, default) / target

        def room(tenant: str | None, kind: str | None) -> float:
            runs = sum(n for (k, t), n in running.items() if kind in (None, k) and tenant in (None, t))
            return max(self.caps.get((tenant, kind), math.inf) - runs, 0)

        nodes = [(tenant, None) for tenant in TENANTS] + [(None, kind) for kind in KINDS]
        return min(
            sum(room(*one) for one in cut)
            + sum(
                min(slots, room(tenant, kind))
                for (kind, tenant), slots in demand.items()
                if (tenant, None) not in cut and (None, kind) not in cut
            )
            for size in range(len(nodes) + 1)
            for cut in itertools.combinations(nodes, size)
        )
