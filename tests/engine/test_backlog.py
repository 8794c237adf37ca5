"""How many workers are wanted: what waits, as far as more workers would help it."""

from __future__ import annotations

import random
import statistics

import asyncpg
import pytest

from support.backlog_model import World
from support.clock import Clock
from support.engine import OTHER, WORK, one_job, some_jobs, start_worker, take
from waybill.db.database import Connection
from waybill.errors import Refused
from waybill_engine import NewJob, SequenceKey, breaker, control, samples, throughput
from waybill_engine.backlog import Backlog, read_backlog
from waybill_engine.breaker_control import trip
from waybill_engine.caps import set_cap
from waybill_engine.enqueue import enqueue
from waybill_engine.rates import set_rate
from waybill_engine.rules import Pace
from waybill_engine.throughput import Finished


async def ended(connection: Connection, kind: str, jobs: int, seconds: float) -> None:
    """So many jobs of a kind ended just now, and each took so long."""
    await throughput.add(connection, [Finished(kind, "succeeded", jobs, 0.0, jobs * seconds)])


async def look(connection: Connection, slots: int = 10, drain_target: float = 60.0) -> Backlog:
    return await read_backlog(connection, slots=slots, drain_target=drain_target)


async def test_nothing_waits_and_nothing_runs_so_nobody_is_wanted(hot: Connection) -> None:
    assert await look(hot) == Backlog(0, 0, 0, 0, None, 0.0, {}, estimated=False)


async def test_what_waits_should_be_gone_within_the_drain_target(hot: Connection) -> None:
    await ended(hot, "work", 100, 6.0)
    await some_jobs(hot, 500)

    assert (await look(hot)).wanted == 5, "500 jobs of 6 s in 60 s keep 50 slots busy"
    assert (await look(hot, drain_target=30.0)).wanted == 10
    assert (await look(hot, slots=1)).wanted == 50
    assert (await look(hot, drain_target=86_400.0)).wanted == 1


async def test_every_job_that_runs_keeps_its_slot(hot: Connection) -> None:
    await ended(hot, "work", 100, 0.001)
    await some_jobs(hot, 21)
    worker = await start_worker(hot)
    assert len(await take(hot, worker, 21)) == 21

    found = await look(hot)

    assert (found.wanted, found.running, found.queued) == (3, 21, 0)
    assert (await look(hot, slots=1_000)).wanted == 1, "never nobody while a job runs"


async def test_a_kind_takes_as_long_as_it_took_of_late(hot: Connection, clock: Clock) -> None:
    await some_jobs(hot, 60)
    assert (await look(hot, slots=1)).wanted == 1, "unknown: a second each"
    await ended(hot, "work", 5, 30.0)
    assert (await look(hot, slots=1)).wanted == 30, "few are better than none"
    await clock.forward(3600.0)
    await ended(hot, "work", 9, 2.0)
    assert (await look(hot, slots=1)).wanted == 12, "too few in a quarter of an hour, so all of the day: 168 s for 14"
    await ended(hot, "work", 1, 2.0)
    assert (await look(hot, slots=1)).wanted == 2
    await clock.forward(90_000.0)
    assert (await look(hot, slots=1)).wanted == 1


async def test_a_job_that_takes_no_time_still_needs_a_worker(hot: Connection) -> None:
    await ended(hot, "work", 100, 0.0)
    await one_job(hot)
    assert (await look(hot)).wanted == 1


async def test_jobs_that_more_workers_would_not_help_are_held(hot: Connection, clock: Clock) -> None:
    await breaker.register_kinds(hot, {"work": [], "other": ["receiver"]})
    worker = await start_worker(hot, kinds=["work"])
    await one_job(hot, delay=600.0)
    for _ in range(2):
        await enqueue(hot, NewJob(WORK, "acme", sequence=SequenceKey("ledger")))
    await some_jobs(hot, 3, queue="night")
    await control.pause(hot, "night", "Maintenance.")
    await some_jobs(hot, 4, OTHER)
    await trip(hot, "receiver", "It is down.")
    await some_jobs(hot, 5, tenant="capped")
    await set_cap(hot, 0, tenant="capped")

    found = await look(hot)

    assert found.held == {"scheduled": 1, "sequence": 1, "queue_paused": 3, "breaker": 4, "cap": 5}
    assert (found.queued, found.waiting, found.wanted) == (1, 13, 1), "the first of the sequence may run"
    assert len(await take(hot, worker)) == 1
    await hot.execute(
        "UPDATE jobs SET state = 'succeeded', lease_owner = NULL, finished_at = now() WHERE state = 'running'"
    )
    found = await look(hot)
    assert (found.queued, found.waiting, found.wanted) == (0, 12, 0), "nobody could do anything"
    await clock.forward(601.0)
    assert (await look(hot)).wanted == 1, "somebody has to promote what is due"


@pytest.mark.parametrize(("tenant", "kind"), [(None, "work"), ("acme", None), ("acme", "work")])
async def test_never_more_workers_than_a_cap_can_use(hot: Connection, tenant: str | None, kind: str | None) -> None:
    await ended(hot, "work", 100, 60.0)
    await some_jobs(hot, 1000)
    assert (await look(hot)).wanted == 100
    await set_cap(hot, 16, tenant=tenant, kind=kind)
    assert (await look(hot)).wanted == 2
    worker = await start_worker(hot)
    assert len(await take(hot, worker)) == 16
    found = await look(hot)
    assert (found.wanted, found.running, found.queued, found.held) == (2, 16, 0, {"cap": 984})
    assert found.seconds_to_drain == pytest.approx(984 * 60 / 10), "the worker's ten slots are the narrower limit"
    await set_cap(hot, 4, tenant=tenant, kind=kind)
    found = await look(hot)
    assert found.wanted == 2, "what runs goes on"
    assert found.seconds_to_drain == pytest.approx(984 * 60 / 4)


async def test_a_rate_keeps_as_many_slots_busy_as_it_starts_jobs(hot: Connection) -> None:
    await ended(hot, "work", 100, 60.0)
    await some_jobs(hot, 6000)
    await set_rate(hot, Pace(60, 60.0, burst=1), kind="work")
    found = await look(hot)
    assert found.wanted == 6, "one start a second, a minute each: 60 slots"
    worker = await start_worker(hot)
    assert len(await take(hot, worker, 5)) == 1
    found = await look(hot)
    assert (found.wanted, found.held) == (6, {"rate": 5999})
    assert found.seconds_to_drain == pytest.approx(5999 * 60 / 10)


async def test_a_half_open_breaker_wants_workers_for_its_probes(hot: Connection) -> None:
    await breaker.register_kinds(hot, {"work": ["gateway"]})
    await ended(hot, "work", 100, 60.0)
    await some_jobs(hot, 1000)
    await hot.execute(
        "INSERT INTO breakers (name, state, open_until) VALUES ('gateway', 'open', now() + interval '30 s')"
    )
    found = await look(hot)
    assert (found.wanted, found.held) == (0, {"breaker": 1000})
    await hot.execute("UPDATE breakers SET open_until = now()")
    assert (await look(hot, slots=1)).wanted == 2, "the next claim half-opens it"
    await hot.execute("UPDATE breakers SET state = 'half_open', open_until = NULL")
    assert (await look(hot, slots=1)).wanted == 2
    assert (await read_backlog(hot, slots=1, probes=5)).wanted == 5


async def test_a_pool_counts_what_it_serves(hot: Connection) -> None:
    await some_jobs(hot, 60)
    await some_jobs(hot, 120, OTHER)
    await some_jobs(hot, 180, queue="night")

    async def wanted(queues: tuple[str, ...], kinds: tuple[str, ...]) -> int:
        return (await read_backlog(hot, queues, kinds, slots=1)).wanted

    assert await wanted((), ()) == 6
    assert await wanted(("default",), ()) == 3
    assert await wanted((), ("work",)) == 4
    assert await wanted(("night",), ("other",)) == 0
    assert await hot.fetchval("SELECT waybill_workers_wanted('{default}', '{}', 1, 60)") == 3
    assert await hot.fetchval("SELECT waybill_workers_wanted()") == 1
    assert await hot.fetchval("SELECT waybill_workers_wanted(queues => '{night}', slots => 2, drain_target => 10)") == 9


async def test_something_that_only_a_worker_can_do_wants_one(hot: Connection) -> None:
    await hot.execute("INSERT INTO missed_turns (tenant, kind, sequence_key) VALUES ('acme', 'work', 'ledger')")
    assert (await look(hot)).wanted == 1
    assert (await read_backlog(hot, kinds=["other"], slots=10)).wanted == 0
    await hot.execute("TRUNCATE missed_turns")
    await hot.execute(
        "INSERT INTO schedules (name, cron, timezone, missed, grace, kind, queue, tenant, payload, max_attempts,"
        " max_crashes, time_limit, next_at) VALUES ('nightly', '0 0 * * *', 'UTC', 'once', 60, 'work', 'default',"
        " 'acme', '{}', 1, 1, 60, now())"
    )
    assert (await look(hot)).wanted == 1
    assert (await read_backlog(hot, ["night"], slots=10)).wanted == 0
    await hot.execute("UPDATE schedules SET next_at = now() + interval '1 minute'")
    assert (await look(hot)).wanted == 0


async def test_the_oldest_is_one_that_is_not_held(hot: Connection, clock: Clock) -> None:
    await one_job(hot, tenant="capped")
    await set_cap(hot, 0, tenant="capped")
    await clock.forward(50.0)
    await some_jobs(hot, 2)
    since = await hot.fetchval("SELECT now()")
    await clock.forward(50.0)
    await some_jobs(hot, 2)
    oldest = (await look(hot)).oldest
    assert oldest is not None
    assert abs((since - oldest).total_seconds()) < 10.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"slots": 0}, "slots of a worker must be between 1"),
        ({"slots": -5}, "slots of a worker must be between 1"),
        ({"slots": 2**40}, "value out of int32 range"),
        ({"slots": 1, "drain_target": 0.0}, "drain target must be more than 0"),
        ({"slots": 1, "drain_target": float("nan")}, "drain target must be more than 0"),
        ({"slots": 1, "drain_target": float("inf")}, "drain target must be more than 0"),
        ({"slots": 1, "default_seconds": -1.0}, "seconds of an unknown kind"),
        ({"slots": 1, "probes": -1}, "probes of a breaker"),
    ],
)
async def test_nonsense_is_refused_with_a_sentence(
    hot: Connection, arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        await read_backlog(hot, **arguments)  # type: ignore[arg-type]


async def test_absent_arrays_stand_for_everything_and_no_numbers_are_refused(hot: Connection) -> None:
    await one_job(hot)
    assert await hot.fetchval("SELECT waybill_workers_wanted(NULL, NULL)") == 1
    with pytest.raises(asyncpg.InvalidParameterValueError, match="slots"):
        await hot.fetchval("SELECT waybill_workers_wanted('{}', '{}', NULL)")


@pytest.mark.parametrize("seed", range(40))
async def test_the_function_says_what_a_plain_model_says(hot: Connection, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        world = World.made_by(chance)
        await world.build(hot)
        queues = tuple(chance.sample(("default", "night", "paused"), chance.randint(0, 2)))
        kinds = tuple(chance.sample(("convert", "extract", "send"), chance.randint(0, 2)))
        slots, target = chance.randint(1, 30), chance.choice((5.0, 60.0, 600.0))
        default, probes = chance.choice((0.0, 1.0, 12.0)), chance.randint(0, 3)
        found = await read_backlog(
            hot, queues, kinds, slots=slots, drain_target=target, default_seconds=default, probes=probes
        )
        model = world.backlog(queues, kinds, slots, target, default, probes)
        said = {name: getattr(found, name) for name in model}
        assert said["seconds_to_drain"] == pytest.approx(model.pop("seconds_to_drain")), world
        del said["seconds_to_drain"]
        assert said == model, world


async def test_caps_that_meet_are_kept_and_nearly_used_up(hot: Connection) -> None:
    chance, shares = random.Random(15), []
    for _ in range(60):
        world = World.made_by(chance)
        world.rates.clear()
        world.breakers.clear()
        await world.build(hot)
        running = sum(jobs for (*_, how), jobs in world.jobs.items() if how == "running")
        most = world.most_slots(60.0, 1.0, 2)
        wanted = (await read_backlog(hot, slots=1)).wanted - running
        assert wanted <= most + 1
        if most > 5:
            shares.append(wanted / most)
    assert min(shares) > 0.5
    assert statistics.mean(shares) > 0.95


# Many jobs

_MANY = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit)
SELECT gen_random_uuid(), 't' || n % $2::int, 't' || n % $2::int,
       (ARRAY['work', 'other', 'third'])[1 + n / 7 % 3], 'default', 'queued', '{}', 60
  FROM generate_series(1, $1::int) AS n
"""

_CAPS = "INSERT INTO caps (tenant, most) SELECT 't' || n, 3 FROM generate_series(0, 499) AS n"


async def test_a_long_queue_is_counted_by_the_newest_sample(hot: Connection) -> None:
    await hot.execute(_MANY, 30_000, 50)
    found = await look(hot)
    assert found.estimated
    assert 9_000 <= found.queued <= 10_000, "as far as it was counted, as long as there is no sample"
    assert await samples.take_if_due(hot, 0.0)
    found = await look(hot)
    assert found.estimated
    assert (found.queued, found.wanted) == (30_000, 50)


async def test_an_old_sample_says_nothing(hot: Connection, clock: Clock) -> None:
    await hot.execute(_MANY, 30_000, 50)
    assert await samples.take_if_due(hot, 0.0)
    await clock.forward(61.0)
    assert (await look(hot)).queued <= 10_000


async def test_what_was_not_counted_is_taken_to_be_like_what_was(hot: Connection) -> None:
    await hot.execute(_MANY, 30_000, 1_000)
    await hot.execute(
        "INSERT INTO caps (tenant, most) SELECT 't' || n, 0 FROM generate_series(0, 999) AS n WHERE n % 2 = 0"
    )
    assert await samples.take_if_due(hot, 0.0)
    found = await look(hot)
    assert found.waiting == pytest.approx(30_000, abs=2)
    assert found.queued == pytest.approx(15_000, rel=0.1)
    assert found.held["cap"] == pytest.approx(15_000, rel=0.1)


async def test_a_look_costs_no_more_when_there_is_more(hot: Connection) -> None:
    await hot.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    await hot.execute(_CAPS)
    await hot.execute(_MANY, 12_000, 1_000)
    few = await touched(hot)
    await hot.execute(_MANY, 100_000, 1_000)
    assert await touched(hot) <= 1.2 * few


_READ_SO_FAR = """
SELECT sum(pg_stat_get_xact_tuples_returned(relation))
  FROM (SELECT 'jobs'::regclass::oid AS relation
         UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = 'jobs'::regclass) AS one
"""


async def touched(connection: Connection) -> int:
    """How many rows of `jobs` and entries of its indexes one look reads."""
    async with connection.transaction():
        before = await connection.fetchval(_READ_SO_FAR)
        await look(connection)
        return int(await connection.fetchval(_READ_SO_FAR) - before)
