"""While a breaker is open, jobs stay queued and spend nothing; a few probes find out when to close it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from support.breakers import (
    CONVERT,
    CONVERTER,
    KINDS,
    POLICY,
    PREVIEW,
    breaker_events,
    claim_gated,
    converter_worker,
    fail,
    standing,
    state_of,
)
from support.clock import Clock
from support.engine import (
    Connect,
    events,
    find_contradictions,
    one_job,
    row,
    some_jobs,
    start_worker,
    state,
    take,
    take_isolated,
    until_blocked,
)
from waybill.db.database import Connection
from waybill.errors import DocumentFault, GatewayTimedOut, GatewayUnavailable, RateLimited
from waybill.failures import classify
from waybill_engine import ClaimedJob, JobKind, State
from waybill_engine.breaker import (
    Admission,
    admit,
    forget_old_events,
    probe_result,
    register_kinds,
)
from waybill_engine.breaker_control import MOST_COUNTED, history, list_breakers, reset, trip
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.excuses import Excuse, find_excuse
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.lease import WorkerInfo
from waybill_engine.rescue import rescue_worker


async def half_open(connection: Connection, clock: Clock) -> None:
    """Opened by failures; its time is up, and the next claim finds out."""
    assert await fail(connection)
    await clock.forward(31)


async def probe_ends(connection: Connection, worker: WorkerInfo, probe: ClaimedJob, *, ok: bool) -> str | None:
    """As a worker writes a probe's end: with the end of its run."""
    async with connection.transaction():
        if ok:
            assert await succeed(connection, worker.id, [(probe.id, probe.token)])
        result = await probe_result(connection, CONVERTER, ok=ok, since=period_of(probe), policy=POLICY)
        if not ok:
            excuse = await excuse_of(connection, probe, GatewayUnavailable())
            outcome = judge(probe, classify(GatewayUnavailable()), CONVERT.retry, excuse=excuse)
            assert await settle(connection, worker.id, [(probe.id, probe.token, outcome)])
    return result


def period_of(probe: ClaimedJob) -> datetime:
    assert probe.probes is not None
    return probe.probes[CONVERTER]


async def excuse_of(connection: Connection, claimed: ClaimedJob, error: Exception) -> Excuse | None:
    return await find_excuse(connection, claimed.id, claimed.attempts, classify(error), CONVERTER, POLICY)


# Opening


async def test_half_of_at_least_ten_calls_open_it(hot: Connection) -> None:
    assert await record(hot, [CallCount(CONVERTER, 9, 9)], POLICY) == set()
    assert await hot.fetchval("SELECT count(*) FROM breakers") == 0, "without trouble there is no row"
    assert await record(hot, [CallCount(CONVERTER, 1, 0)], POLICY) == {CONVERTER}
    breaker = await standing(hot)
    assert (breaker["state"], breaker["reason"]) == ("open", "9 of 10 calls failed")
    assert breaker["open_until"] - breaker["since"] == timedelta(seconds=30)
    (event,) = await history(hot, CONVERTER)
    assert (event.event, event.detail["calls"], event.detail["failures"]) == ("opened", 10, 9)


async def test_fewer_than_half_never_open_it(hot: Connection) -> None:
    for _ in range(50):
        assert await record(hot, [CallCount(CONVERTER, 100, 49)], POLICY) == set()
    assert await state_of(hot) == "closed"


async def test_one_dependencys_failures_do_not_open_anothers(hot: Connection) -> None:
    assert await record(
        hot, [CallCount("mail", 100, 0), CallCount(CONVERTER, 20, 20), CallCount("archive", 9, 9)], POLICY
    ) == {CONVERTER}
    assert [await state_of(hot, name) for name in ("archive", "mail")] == ["closed", "closed"]


async def test_failures_older_than_the_window_are_forgotten(hot: Connection, clock: Clock) -> None:
    await fail(hot, 9)
    await clock.forward(320)
    assert not await fail(hot, 9)
    await clock.forward(200)
    assert await fail(hot, 1), "nine of these are not older than five minutes"


async def test_what_was_counted_does_not_pile_up(hot: Connection, clock: Clock) -> None:
    for _ in range(100):
        await record(hot, [CallCount(CONVERTER, 10, 0)], POLICY)
        await clock.forward(10)
    assert await hot.fetchval("SELECT count(*) FROM breaker_counts") <= 62, "two windows of thirty buckets each"


async def test_of_twenty_workers_that_see_it_fail_one_opens_it(hot: Connection, connect: Connect) -> None:
    connections = [await connect() for _ in range(20)]
    answers = await asyncio.gather(*(fail(connection, 5) for connection in connections))
    assert sum(answers) == 1
    assert await breaker_events(hot) == ["opened"]
    assert await hot.fetchval("SELECT sum(calls) FROM breaker_counts") == 100, "nobody's count is lost"


async def test_flushes_of_several_dependencies_do_not_wait_for_each_other_in_circles(
    hot: Connection, connect: Connect
) -> None:
    names = ["archive", CONVERTER, "mail"]

    async def flush(number: int) -> None:
        connection = await connect()
        for turn in range(10):
            order = names if (number + turn) % 2 else names[::-1]
            await record(connection, [CallCount(name, 1, 1) for name in order], POLICY)

    await asyncio.gather(*(flush(number) for number in range(8)))
    assert [await breaker_events(hot, name) for name in names] == [["opened"]] * 3


async def test_calls_that_end_while_it_is_not_closed_change_nothing(hot: Connection, clock: Clock) -> None:
    await fail(hot)
    before = await standing(hot)
    assert not await fail(hot, 100)
    assert await record(hot, [CallCount(CONVERTER, 1000, 0)], POLICY) == set()
    assert await standing(hot) == before
    await clock.forward(31)
    await one_job(hot, CONVERT)
    await claim_gated(hot, await converter_worker(hot))
    during = await standing(hot)
    assert not await fail(hot, 5000)
    assert await standing(hot) == during
    assert await breaker_events(hot) == ["opened", "half_opened"]


async def test_failures_an_operator_forgave_in_between_do_not_open_it(hot: Connection, connect: Connect) -> None:
    """A flush that looked before the reset must not act after it on what it saw."""
    flushing, operator = await connect(), await connect()
    await fail(hot, 9)
    await trip(hot, CONVERTER, "maintenance")
    await reset(hot, CONVERTER)  # there is a row now, and it is closed
    await fail(hot, 9)
    transaction = operator.transaction()
    await transaction.start()
    await operator.execute("SELECT FROM breakers FOR UPDATE")
    flush = asyncio.create_task(fail(flushing, 1))
    await until_blocked(hot, flushing)
    await trip(operator, CONVERTER, "again")
    await reset(operator, CONVERTER)
    await transaction.commit()
    assert not await flush
    assert await state_of(hot) == "closed"


# Holding


async def test_while_it_is_open_nothing_is_let_through_and_the_answer_says_when(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    jobs = await some_jobs(hot, 3, CONVERT)
    assert await admit(hot, [CONVERTER], POLICY) == {}, "closed: no limit"
    await fail(hot)
    granted = await admit(hot, [CONVERTER, "mail"], POLICY)
    assert granted.keys() == {CONVERTER}
    assert (granted[CONVERTER].room, granted[CONVERTER].since) == (0, None)
    assert granted[CONVERTER].look_in == pytest.approx(30, abs=5)
    assert await claim_gated(hot, worker) == []
    assert [(await row(hot, one))["attempts"] for one in jobs] == [0, 0, 0]
    await clock.forward(25)
    assert (await admit(hot, [CONVERTER], POLICY))[CONVERTER].look_in == pytest.approx(5, abs=5)
    assert await breaker_events(hot) == ["opened"]


async def test_claims_while_it_is_open_do_not_wait_for_each_other(hot: Connection, connect: Connect) -> None:
    await fail(hot)
    other = await connect()
    async with hot.transaction(), other.transaction():
        await admit(hot, [CONVERTER], POLICY)
        assert (await admit(other, [CONVERTER], POLICY))[CONVERTER].room == 0


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (GatewayUnavailable(), True),
        (GatewayTimedOut(), True),
        (GatewayUnavailable(retry_after=30), False),
        (GatewayUnavailable(retry_after=float("nan")), True),
        (RateLimited(retry_after=30), False),
        (DocumentFault(), False),
        (ValueError("surprise"), False),
        (TimeoutError(), False),
        (ExceptionGroup("together", [GatewayTimedOut(), DocumentFault()]), True),
    ],
)
def test_only_a_dependencys_own_failure_counts_against_it(error: Exception, counts: bool) -> None:
    assert classify(error).of_dependency is counts


async def a_run(connection: Connection) -> ClaimedJob:
    worker = await converter_worker(connection)
    await one_job(connection, CONVERT)
    (claimed,) = await take(connection, worker, 1)
    return claimed


async def test_a_dependencys_failure_costs_no_attempt_while_its_breaker_is_not_closed(hot: Connection) -> None:
    claimed, failure = await a_run(hot), classify(GatewayUnavailable())
    await fail(hot)
    for attempts in (0, 2):  # the last attempt, too
        last = replace(claimed, attempts=attempts)
        excuse = await excuse_of(hot, last, GatewayUnavailable())
        assert excuse is not None
        assert excuse.wait == pytest.approx(30, abs=5)
        waits = judge(last, failure, CONVERT.retry, excuse=excuse)
        assert (waits.event, waits.charge, waits.state) == ("postponed", 0, State.SCHEDULED)
        assert waits.delay > excuse.wait, "it comes back after its peers had their turn"


@pytest.mark.parametrize(
    ("error", "event", "charge"),
    [
        (DocumentFault(), "failed", 1),
        (ValueError(), "retry_scheduled", 1),
        (RateLimited(retry_after=5), "postponed", 0),
    ],
)
async def test_a_breaker_excuses_nothing_but_its_dependencys_failure(
    hot: Connection, error: Exception, event: str, charge: int
) -> None:
    assert CONVERT.blamed(classify(error)) is None
    outcome = judge(await a_run(hot), classify(error), CONVERT.retry)
    assert (outcome.event, outcome.charge) == (event, charge)


async def test_a_job_is_not_put_off_for_the_day_an_operator_tripped_the_breaker_for(hot: Connection) -> None:
    claimed = await a_run(hot)
    await trip(hot, CONVERTER, "maintenance", 86400)
    excuse = await excuse_of(hot, claimed, GatewayUnavailable())
    assert excuse is not None
    assert excuse.wait == POLICY.open_at_most
    await trip(hot, CONVERTER, "maintenance")
    excuse = await excuse_of(hot, claimed, GatewayUnavailable())
    assert excuse is not None
    assert excuse.wait == 0


# Probing


async def test_when_its_time_is_up_as_many_probes_are_let_through_as_configured(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await some_jobs(hot, 3, PREVIEW)
    await half_open(hot, clock)
    probes = await claim_gated(hot, worker)
    assert len(probes) == POLICY.probes, "of all its kinds together"
    assert await claim_gated(hot, worker) == []
    assert (await admit(hot, [CONVERTER], POLICY))[CONVERTER] == Admission(room=0)
    breaker = await standing(hot)
    assert (breaker["state"], breaker["open_until"]) == ("half_open", None)
    assert {period_of(probe) for probe in probes} == {breaker["since"]}
    assert await breaker_events(hot) == ["opened", "half_opened"]


@pytest.mark.parametrize("probes", [1, 2, 5])
async def test_of_twenty_workers_claiming_at_once_only_the_configured_probes_start(
    hot: Connection, connect: Connect, clock: Clock, probes: int
) -> None:
    policy = replace(POLICY, probes=probes)
    await some_jobs(hot, 50, CONVERT)
    await half_open(hot, clock)
    crowd = [(await connect(), await converter_worker(hot)) for _ in range(20)]

    async def look_until_somebody_is_done(connection: Connection, worker: WorkerInfo) -> list[ClaimedJob]:
        mine: list[ClaimedJob] = []
        for _ in range(10):
            mine += await claim_gated(connection, worker, 1, policy)
        return mine

    claimed = await asyncio.gather(*(look_until_somebody_is_done(*one) for one in crowd))
    assert sum(len(mine) for mine in claimed) == probes
    assert await breaker_events(hot) == ["opened", "half_opened"]


async def test_a_claim_that_began_before_the_period_starts_no_probe_in_it(
    hot: Connection, connect: Connect, clock: Clock
) -> None:
    """Its jobs would carry an earlier beginning, and would not count."""
    early, worker = await connect(), await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await half_open(hot, clock)
    async with early.transaction():
        await early.fetchval("SELECT now()")
        assert len(await claim_gated(hot, worker, 1)) == 1
        granted = (await admit(early, [CONVERTER], POLICY))[CONVERTER]
        assert granted.room == 0
        assert granted.look_in is not None
        assert granted.look_in < 1
    assert (await admit(early, [CONVERTER], POLICY))[CONVERTER].room == 1


async def test_runs_that_began_before_it_opened_are_no_probes(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 8, CONVERT)
    assert len(await take(hot, worker, 5)) == 5
    await half_open(hot, clock)
    assert len(await claim_gated(hot, worker)) == 2


async def test_it_closes_when_enough_probes_succeeded(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 5, CONVERT)
    await half_open(hot, clock)
    first, second = await claim_gated(hot, worker)
    assert await probe_ends(hot, worker, first, ok=True) == "half_open"
    assert await claim_gated(hot, worker) == [], "one success and one that still tries are two"
    assert await probe_ends(hot, worker, second, ok=True) == "closed"
    assert await breaker_events(hot) == ["opened", "half_opened", "closed"]
    assert len(await claim_gated(hot, worker)) == 3


async def test_failures_from_before_do_not_open_it_again(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 2, CONVERT)
    await fail(hot, 1000)
    await clock.forward(31)
    for probe in await claim_gated(hot, worker):
        await probe_ends(hot, worker, probe, ok=True)
    assert not await fail(hot, 9)
    assert await fail(hot, 1), "but new ones do, from the first moment"
    assert await breaker_events(hot) == ["opened", "half_opened", "closed", "opened"]
    assert (await standing(hot))["open_seconds"] == 30, "and it starts with the short wait"


async def test_each_failing_probe_doubles_the_wait_up_to_its_limit(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 20, CONVERT)
    await fail(hot)
    waits = []
    for _ in range(6):
        waits.append((await standing(hot))["open_seconds"])
        await clock.forward(waits[-1] - 3)
        assert await claim_gated(hot, worker) == []
        await clock.forward(4)
        first, second = await claim_gated(hot, worker)
        assert await probe_ends(hot, worker, first, ok=False) == "open"
        # The other probe of that period is late, whatever it found out.
        assert await probe_ends(hot, worker, second, ok=True) is None
    assert waits == [30, 60, 120, 240, 300, 300]
    assert (await breaker_events(hot))[:3] == ["opened", "half_opened", "reopened"]
    assert (await breaker_events(hot)).count("reopened") == 6
    assert await hot.fetchval("SELECT max(attempts) FROM jobs") == 0


async def test_the_same_document_is_not_the_probe_for_ever(hot: Connection, clock: Clock) -> None:
    """One the dependency chokes on comes back after its peers, and they close the breaker."""
    worker = await converter_worker(hot)
    bad, *_ = await some_jobs(hot, 3, CONVERT)
    await half_open(hot, clock)
    first, second = await claim_gated(hot, worker)
    assert first.id == bad
    await probe_ends(hot, worker, first, ok=False)
    await probe_ends(hot, worker, second, ok=True)
    await some_jobs(hot, 1, CONVERT)
    await clock.forward(61)
    assert await state(hot, bad) is State.SCHEDULED
    assert (await row(hot, bad))["run_at"] > await hot.fetchval("SELECT now()"), "the next probes are others"
    for probe in await claim_gated(hot, worker):
        await probe_ends(hot, worker, probe, ok=True)
    assert await state_of(hot) == "closed"


async def test_a_probes_end_counts_for_its_own_period_only(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await half_open(hot, clock)
    old, _ = await claim_gated(hot, worker)
    await trip(hot, CONVERTER, "maintenance", 5)
    assert await probe_result(hot, CONVERTER, ok=True, since=period_of(old), policy=POLICY) is None
    await clock.forward(6)
    (new, *_) = await claim_gated(hot, worker)
    before = await standing(hot)
    for ok in (True, False):
        assert await probe_result(hot, CONVERTER, ok=ok, since=period_of(old), policy=POLICY) is None
    assert await standing(hot) == before
    assert period_of(new) != period_of(old)
    await reset(hot, CONVERTER)
    assert await probe_result(hot, CONVERTER, ok=False, since=period_of(new), policy=POLICY) is None
    assert await state_of(hot) == "closed"


async def test_two_successes_at_once_close_it_once(hot: Connection, connect: Connect, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 2, CONVERT)
    await half_open(hot, clock)
    probes = await claim_gated(hot, worker)
    connections = [await connect() for _ in probes]
    states = await asyncio.gather(
        *(probe_ends(one, worker, probe, ok=True) for one, probe in zip(connections, probes, strict=True))
    )
    assert sorted(str(one) for one in states) == ["closed", "half_open"]
    assert await breaker_events(hot) == ["opened", "half_opened", "closed"]


async def test_a_probe_that_ends_by_its_documents_fault_makes_room_for_another(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await half_open(hot, clock)
    first, _ = await claim_gated(hot, worker)
    outcome = judge(first, classify(DocumentFault()), CONVERT.retry)
    await settle(hot, worker.id, [(first.id, first.token, outcome)])
    assert len(await claim_gated(hot, worker)) == 1
    assert await state_of(hot) == "half_open"


async def test_a_worker_that_dies_holding_a_probe_does_not_wedge_it_and_its_job_is_not_charged(
    hot: Connection, clock: Clock
) -> None:
    doomed, other = await converter_worker(hot), await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await half_open(hot, clock)
    (probe,) = await claim_gated(hot, doomed, 1)
    (_,) = await claim_gated(hot, other)
    assert await claim_gated(hot, other) == []
    (rescued,) = await rescue_worker(hot, doomed.id)
    assert (rescued.id, rescued.event) == (probe.id, "suspected")
    job = await row(hot, probe.id)
    assert (job["state"], job["attempts"], job["crashes"], job["isolate"]) == ("queued", 0, 0, True)
    assert len(await claim_gated(hot, other)) == 1
    assert await find_contradictions(hot) == []


async def test_a_probe_that_takes_its_worker_down_alone_is_charged(hot: Connection, clock: Clock) -> None:
    await one_job(hot, CONVERT)
    await half_open(hot, clock)
    doomed = await converter_worker(hot)
    (probe,) = await claim_gated(hot, doomed)
    await rescue_worker(hot, doomed.id)
    alone = await converter_worker(hot)
    (again,) = await take_isolated(hot, alone)
    assert again.id == probe.id
    await rescue_worker(hot, alone.id)
    assert await events(hot, probe.id) == ["suspected", "crashed"]


async def test_a_crash_is_charged_as_ever_when_the_breaker_is_closed(hot: Connection) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    await fail(hot)
    await reset(hot, CONVERTER)
    assert len(await claim_gated(hot, worker)) == 1
    await rescue_worker(hot, worker.id)
    assert await events(hot, job) == ["crashed"]


async def test_lowering_the_number_of_probes_wedges_nothing(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 4, CONVERT)
    await half_open(hot, clock)
    three = replace(POLICY, probes=3)
    first, second = (await claim_gated(hot, worker, 2, three))[:2]
    for probe in (first, second):
        async with hot.transaction():
            await succeed(hot, worker.id, [(probe.id, probe.token)])
            await probe_result(hot, CONVERTER, ok=True, since=period_of(probe), policy=three)
    (last,) = await claim_gated(hot, worker, policy=replace(POLICY, probes=1))
    assert await probe_ends(hot, worker, last, ok=True) == "closed"


# An operator


async def test_a_tripped_breaker_stays_open_until_it_is_reset(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await one_job(hot, CONVERT)
    await trip(hot, CONVERTER, "the vendor maintains it")
    await clock.forward(1_000_000)
    assert await admit(hot, [CONVERTER], POLICY) == {CONVERTER: Admission(room=0)}
    assert await reset(hot, CONVERTER)
    assert not await reset(hot, CONVERTER)
    assert not await reset(hot, "nobody")
    assert len(await claim_gated(hot, worker)) == 1
    assert await breaker_events(hot) == ["tripped", "reset"]


async def test_a_breaker_tripped_for_a_while_lets_probes_through_afterwards(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 3, CONVERT)
    await trip(hot, CONVERTER, "careful", 600)
    await clock.forward(601)
    first, _ = await claim_gated(hot, worker)
    await probe_ends(hot, worker, first, ok=False)
    assert (await standing(hot))["open_seconds"] == POLICY.open_at_most


async def test_every_transition_tells_the_workers_to_look(hot: Connection, connect: Connect, clock: Clock) -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    listening = await connect()
    await listening.add_listener("waybill_control", lambda *said: heard.put_nowait(said[-1]))
    worker = await converter_worker(hot)
    await some_jobs(hot, 5, CONVERT)

    async def transition(doing: Any) -> Any:
        answer = await doing
        assert await asyncio.wait_for(heard.get(), 10) == "look"
        return answer

    await transition(fail(hot))
    await clock.forward(31)
    first, _ = await transition(claim_gated(hot, worker))
    await transition(probe_ends(hot, worker, first, ok=False))
    await clock.forward(61)
    first, second = await transition(claim_gated(hot, worker))
    await probe_ends(hot, worker, first, ok=True)
    await transition(probe_ends(hot, worker, second, ok=True))
    await transition(trip(hot, CONVERTER, "why"))
    await transition(reset(hot, CONVERTER))
    assert heard.empty()


# Looking


async def test_dependencies_are_listed_before_anything_happened_to_them(hot: Connection) -> None:
    await register_kinds(hot, {**KINDS, "send": ("mail",)})
    await register_kinds(hot, {"send": ("post",)})  # a new version needs something else
    converter, post = await list_breakers(hot)
    assert (converter.name, converter.state, converter.kinds) == (CONVERTER, "closed", ["convert", "preview"])
    assert (converter.since, converter.calls, converter.blocked) == (None, 0, 0)
    assert (post.name, post.kinds) == ("post", ["send"])


async def test_the_list_says_how_much_is_held_and_how_it_fares(hot: Connection) -> None:
    await converter_worker(hot)
    await start_worker(hot, kinds=("convert",))
    await some_jobs(hot, 3, CONVERT)
    await some_jobs(hot, 2, PREVIEW)
    await some_jobs(hot, 4)
    await some_jobs(hot, 1, CONVERT, queue="nobody_serves_this")
    await record(hot, [CallCount(CONVERTER, 9, 3)], POLICY)
    (before,) = await list_breakers(hot)
    assert (before.calls, before.failures, before.blocked) == (9, 3, 0)
    await trip(hot, CONVERTER, "why")
    (after,) = await list_breakers(hot, CONVERTER)
    assert (after.state, after.reason, after.blocked) == ("open", "why", 5)
    assert await list_breakers(hot, "nobody") == []


async def test_counting_what_is_held_is_bounded(hot: Connection) -> None:
    await converter_worker(hot)
    await some_jobs(hot, MOST_COUNTED + 50, CONVERT)
    await trip(hot, CONVERTER, "why")
    (found,) = await list_breakers(hot)
    assert found.blocked == MOST_COUNTED + 1


async def test_a_held_job_says_why_it_waits(hot: Connection, clock: Clock) -> None:
    await converter_worker(hot)
    job, other = await one_job(hot, CONVERT), await one_job(hot)
    await fail(hot)
    explained = await explain(hot, job)
    assert explained.reason is Reason.BREAKER
    until = (await standing(hot))["open_until"]
    assert explained.sentence == (
        f"The breaker of converter is open until {until:%Y-%m-%d %H:%M:%S} UTC (10 of 10 calls failed)."
    )
    assert explained.facts["open_until"] == until
    assert (await explain(hot, other)).reason is not Reason.BREAKER
    await clock.forward(31)
    await admit(hot, [CONVERTER], POLICY)
    assert "half open" in (await explain(hot, job)).sentence
    await trip(hot, CONVERTER, "maintenance")
    assert "until an operator resets it (maintenance)" in (await explain(hot, job)).sentence
    await reset(hot, CONVERTER)
    assert (await explain(hot, job)).reason is not Reason.BREAKER


async def test_history_is_kept_for_a_while_and_no_longer(hot: Connection, clock: Clock) -> None:
    await trip(hot, CONVERTER, "a\0b")
    await clock.forward(91 * 86400)
    await reset(hot, CONVERTER)
    await forget_old_events(hot)
    assert [one.event for one in await history(hot, CONVERTER)] == ["reset"]


@pytest.mark.parametrize("name", ["", "Converter", "con verter", "9lives", "x" * 64])
def test_a_dependencys_name_is_like_a_kinds(name: str) -> None:
    with pytest.raises(ValueError, match="dependency"):
        JobKind("work", dependencies=("fine", name))
