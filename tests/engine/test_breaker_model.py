"""Hypothesis drives a breaker and a simple model of it side by side, and compares them after every step.

Time moves in steps of a thousand seconds, so that the seconds a run really takes decide nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.breakers import CONVERT, CONVERTER, breaker_events, claim_gated, converter_worker, state_of
from support.engine import some_jobs
from waybill.db.database import Connection
from waybill.db.session_settings import ONE_PLAN
from waybill.errors import DocumentFault, GatewayUnavailable
from waybill.failures import classify
from waybill_engine import ClaimedJob, State
from waybill_engine.breaker import BreakerPolicy, probe_result
from waybill_engine.breaker_control import reset, trip
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.excuses import find_excuse
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.lease import WorkerInfo
from waybill_engine.let_downs import settle_let_down
from waybill_engine.rescue import rescue_worker

T = TypeVar("T")

POLICY = BreakerPolicy(window=2500.0, failure_share=0.5, min_calls=4, open_for=1500.0, open_at_most=4500.0, probes=2)
ASKED = 1700.0
"""Seconds for which the dependency asks us to wait. Neither these nor twice as many end when a step does."""


@dataclass
class Model:
    """A breaker as its page tells it."""

    now: float = 0.0
    state: str = "closed"
    open_until: float | None = None
    wait: float = 0.0
    successes: int = 0
    period: int = 0
    """Which half-open period this is, or was the last."""
    counts: list[tuple[float, int, int]] = field(default_factory=list)
    failed: int = 0
    away: int = 0
    """How many jobs failed in a row, and how many calls in a row could not reach the dependency."""
    cools_until: float | None = None
    cooled_for: float = 0.0
    """How long the last cool-down was, if nothing has succeeded since."""
    events: list[str] = field(default_factory=list)

    def change(self, state: str, event: str, *, until: float | None = None, wait: float = 0.0) -> None:
        self.state, self.open_until, self.wait, self.successes = state, until, wait, 0
        self.events.append(event)
        if state == "closed":
            self.counts.clear()
        if event in ("opened", "tripped", "reset", "closed"):
            self.failed = self.away = 0
        if event == "reset":
            self.cools_until, self.cooled_for = None, 0.0

    def count(self, calls: int, failures: int, failed: int = 0, away: int = 0) -> None:
        if calls > failures:
            self.succeeded()
        self.failed += failed
        self.away += away
        self.counts.append((self.now, calls, failures))
        recent = [one for one in self.counts if self.now - one[0] < POLICY.window]
        calls, failures = sum(one[1] for one in recent), sum(one[2] for one in recent)
        share = calls >= POLICY.min_calls and failures >= POLICY.failure_share * calls
        in_a_row = self.failed >= POLICY.failures_in_a_row or self.away >= POLICY.away_in_a_row
        if self.state == "closed" and (share or in_a_row):
            self.change("open", "opened", until=self.now + POLICY.open_for, wait=POLICY.open_for)

    def succeeded(self) -> None:
        self.failed = self.away = 0
        self.cooled_for = 0.0

    @property
    def cools(self) -> bool:
        return self.cools_until is not None and self.cools_until > self.now

    def asked_to_wait(self, seconds: float) -> None:
        if self.cools_until is not None and self.cools_until >= self.now + 0.9 * seconds:
            return
        if self.state == "closed" and not self.cools:
            self.events.append("asked_to_wait")
        self.cooled_for = min(max(seconds, (1 if self.cools else 2) * self.cooled_for), POLICY.open_at_most)
        self.cools_until = self.now + self.cooled_for

    def room(self, in_flight: int) -> int | None:
        if self.cools:
            return 0
        if self.state == "open" and self.open_until is not None and self.open_until <= self.now:
            self.change("half_open", "half_opened", wait=self.wait)
            self.period += 1
            in_flight = 0
        if self.state == "half_open":
            return POLICY.probes - in_flight - self.successes
        return 0 if self.state == "open" else None

    def probe_ended(self, *, ok: bool, asked: float | None = None) -> None:
        if ok:
            self.succeeded()
        if not ok:
            wait = max(2 * self.wait, POLICY.open_for) if asked is None else max(self.wait, asked)
            wait = min(wait, POLICY.open_at_most)
            self.change("open", "reopened", until=self.now + wait, wait=wait)
        elif self.successes + 1 == POLICY.probes:
            self.change("closed", "closed")
        else:
            self.successes += 1


@dataclass
class Running:
    worker: WorkerInfo
    claimed: ClaimedJob
    period: int | None
    """Of which half-open period it is a probe."""


@dataclass
class Ground:
    loop: asyncio.AbstractEventLoop
    connection: Connection

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)


class BreakerMachine(RuleBasedStateMachine):
    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.run, self.on = ground.run, ground.connection
        self.model = Model()
        self.running: list[Running] = []
        self.former: list[Running] = []
        self.workers: list[WorkerInfo] = []
        self.undisturbed = 0
        """Steps since somebody died or an operator stepped in: mostly, breakers are left to themselves."""

    @initialize()
    def begin(self) -> None:
        tables = ("jobs", "job_events", "workers", "kinds", "breakers", "breaker_counts", "breaker_events")
        # For so few rows a tenth of what TRUNCATE takes, which makes every index anew.
        empty = "".join(f"DELETE FROM {table};" for table in tables)
        self.run(self.on.execute(f"{empty} UPDATE test_clock.shift SET seconds = 0"))
        self.workers = [self.run(converter_worker(self.on)) for _ in range(2)]

    @rule(steps=st.sampled_from((1, 1, 2, 3)))
    def time_passes(self, steps: int) -> None:
        self.run(self.on.execute("UPDATE test_clock.shift SET seconds = seconds + $1", 1000.0 * steps))
        self.model.now += 1000.0 * steps

    @rule(calls=st.integers(1, 5), failures=st.sampled_from((0, 1, 5)))
    def flush(self, calls: int, failures: int) -> None:
        before = self.model.state
        self.model.count(calls, min(calls, failures))
        opened = self.run(record(self.on, [CallCount(CONVERTER, calls, min(calls, failures))], POLICY))
        assert bool(opened) is (before == "closed" and self.model.state == "open")

    @rule(failed=st.integers(0, 2), away=st.integers(0, 1), succeeded=st.booleans())
    def calls_in_a_row_fail(self, failed: int, away: int, succeeded: bool) -> None:
        """Some fail after the last success, if there was one. Too few to open it by their share."""
        failures, calls = failed + away, failed + away + 9 * succeeded
        if calls:
            self.model.count(calls, failures, failed + away, away)
            count = CallCount(CONVERTER, calls, failures, failed_in_a_row=failed + away, away_in_a_row=away)
            self.run(record(self.on, [count], POLICY))

    @rule(which=st.integers(0, 1), limit=st.integers(1, 3))
    def claim(self, which: int, limit: int) -> None:
        worker = self.workers[which]
        self.run(some_jobs(self.on, limit, CONVERT))
        room = self.model.room(sum(one.period == self.model.period for one in self.running))
        claimed_jobs = self.run(claim_gated(self.on, worker, limit, POLICY))
        assert len(claimed_jobs) == (limit if room is None else min(limit, room))
        period = self.model.period if room is not None and self.model.state != "closed" else None
        assert all((claimed.probes is not None) is (period is not None) for claimed in claimed_jobs)
        self.running += [Running(worker, claimed, period) for claimed in claimed_jobs]

    @precondition(lambda self: self.running)
    @rule(
        which=st.integers(0, 1000),
        how=st.sampled_from(("well", "let down", "let down", "asked to wait", "by its document")),
    )
    def a_run_ends(self, which: int, how: str) -> None:
        one = self.running.pop(which % len(self.running))
        self.former.append(one)
        if how == "by its document":
            outcome = judge(one.claimed, classify(DocumentFault()), CONVERT.retry)
            assert outcome.event == "failed"
            self.run(settle(self.on, one.worker.id, [(one.claimed.id, one.claimed.token, outcome)]))
            return
        if how == "asked to wait":
            self.is_asked_to_wait(one)
            return
        if one.period is not None:
            self.report(one, ok=how == "well")
        if how == "well":
            assert self.run(succeed(self.on, one.worker.id, [(one.claimed.id, one.claimed.token)]))
        else:
            failure = classify(GatewayUnavailable())
            excuse = self.run(find_excuse(self.on, one.claimed.id, one.claimed.attempts, failure, CONVERTER, POLICY))
            outcome = judge(one.claimed, failure, CONVERT.retry, excuse=excuse)
            assert outcome.charge == 0, "it is the job's first failure, and nothing shows that it is to blame"
            assert self.run(settle(self.on, one.worker.id, [(one.claimed.id, one.claimed.token, outcome)]))
        if one.period is None:
            self.flush(1, int(how != "well"))

    @precondition(lambda self: self.model.state == "closed" and not self.model.cools)
    @rule(which=st.integers(0, 1), runs=st.integers(1, 3))
    def it_asks_for_time(self, which: int, runs: int) -> None:
        """One cool-down, however many ask for it."""
        self.claim(which, runs)
        for _ in range(runs):
            self.a_run_ends(len(self.running) - 1, "asked to wait")

    def is_asked_to_wait(self, one: Running) -> None:
        if self.counts(one):
            self.model.probe_ended(ok=False, asked=ASKED)
        else:
            self.model.asked_to_wait(ASKED)
        failure = classify(GatewayUnavailable(retry_after=ASKED))
        state = self.run(settle_let_down(self.on, one.claimed, failure, CONVERTER, CONVERT.retry, POLICY))
        assert state is State.SCHEDULED
        assert self.run(self.on.fetchval("SELECT attempts FROM jobs WHERE id = $1", one.claimed.id)) == 0

    def counts(self, one: Running) -> bool:
        """Whether it is a probe of the period that goes on."""
        return self.model.state == "half_open" and one.period == self.model.period

    def report(self, one: Running, *, ok: bool) -> None:
        assert one.claimed.probes is not None
        counts = self.counts(one)
        if counts:
            self.model.probe_ended(ok=ok)
        answer = self.run(probe_result(self.on, CONVERTER, ok=ok, since=one.claimed.probes[CONVERTER], policy=POLICY))
        assert answer == (self.model.state if counts else None)

    @precondition(lambda self: any(one.period not in (None, self.model.period) for one in self.former))
    @rule(which=st.integers(0, 1000), ok=st.booleans())
    def an_earlier_periods_probe_reports_late(self, which: int, ok: bool) -> None:
        late = [one for one in self.former if one.period not in (None, self.model.period)]
        self.report(late[which % len(late)], ok=ok)

    @precondition(lambda self: self.undisturbed > 4)
    @rule(which=st.integers(0, 1))
    def a_worker_dies(self, which: int) -> None:
        self.undisturbed = 0
        dead, self.workers[which] = self.workers[which], self.run(converter_worker(self.on))
        self.run(rescue_worker(self.on, dead.id))
        self.former += [one for one in self.running if one.worker is dead]
        self.running = [one for one in self.running if one.worker is not dead]

    @precondition(lambda self: self.model.state == "open" and self.model.open_until is not None)
    @rule(which=st.integers(0, 1))
    def its_time_is_up_and_probes_start(self, which: int) -> None:
        self.time_passes(5)
        self.claim(which, 3)

    @precondition(lambda self: any(one.period == self.model.period for one in self.running))
    @rule(hows=st.sampled_from((("well", "well"), ("well", "well"), ("well",), ("well", "let down"), ("let down",))))
    def probes_end(self, hows: tuple[str, ...]) -> None:
        for how in hows:
            probe = next((i for i, one in enumerate(self.running) if one.period == self.model.period), None)
            if probe is not None:
                self.a_run_ends(probe, how)

    @precondition(lambda self: self.model.state == "open" and self.model.open_until is not None)
    @rule(which=st.integers(0, 1))
    def it_is_well_again(self, which: int) -> None:
        self.its_time_is_up_and_probes_start(which)
        self.probes_end(("well", "well"))

    @precondition(lambda self: self.model.state == "open" and self.model.open_until is not None)
    @rule(which=st.integers(0, 1))
    def its_time_is_up_too_early(self, which: int) -> None:
        self.its_time_is_up_and_probes_start(which)
        self.probes_end(("let down",))

    @rule()
    def the_dependency_goes_down(self) -> None:
        """What breakers are for; without it games are all talk."""
        self.flush(5, 5)
        self.flush(5, 5)

    @precondition(lambda self: self.undisturbed > 5)
    @rule(seconds=st.sampled_from((None, 1500.0, 1500.0)))
    def an_operator_steps_in(self, seconds: float | None) -> None:
        self.undisturbed = 0
        if self.model.cools or (self.model.state == "open" and self.model.open_until is None):
            assert self.run(reset(self.on, CONVERTER))
            self.model.change("closed", "reset")
            return
        self.run(trip(self.on, CONVERTER, "by hand", seconds))
        until = None if seconds is None else self.model.now + seconds
        self.model.change("open", "tripped", until=until, wait=seconds or 0.0)

    @precondition(lambda self: self.model.state == "half_open" and self.undisturbed > 8)
    @rule()
    def an_operator_does_not_wait_for_the_probes(self) -> None:
        self.undisturbed = 0
        assert self.run(reset(self.on, CONVERTER))
        self.model.change("closed", "reset")

    @invariant()
    def the_breaker_is_as_the_model_says(self) -> None:
        self.undisturbed += 1
        assert self.run(state_of(self.on)) == self.model.state
        assert self.run(breaker_events(self.on)) == self.model.events
        row = self.run(self.on.fetchrow("SELECT * FROM breakers"))
        if row is not None:
            assert (row["open_until"] is not None) is (self.model.open_until is not None)
            if self.model.state != "closed":
                assert (row["open_seconds"], row["successes"]) == (self.model.wait, self.model.successes)
            in_a_row = (row["failed_in_a_row"], row["away_in_a_row"], row["cooldown_seconds"])
            assert in_a_row == (self.model.failed, self.model.away, self.model.cooled_for)
            assert (row["cooldown_until"] is None) is (self.model.cools_until is None)


@pytest.fixture
def ground(server_url: str, template: str) -> Iterator[Ground]:
    name = f"waybill_breaker_machine_{os.getpid()}"
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    loop = asyncio.new_event_loop()

    async def on_server(*statements: str) -> None:
        server = await asyncpg.connect(server_url)
        for statement in statements:
            await server.execute(statement)
        await server.close()

    async def prepare() -> Connection:
        await on_server(
            f"CREATE DATABASE {name} TEMPLATE {template}",
            f"ALTER DATABASE {name} SET search_path = test_clock, pg_catalog, public",
        )
        connection = await asyncpg.connect(url, server_settings=ONE_PLAN)
        # Committing to disk proves nothing here and takes most of the time.
        await connection.execute("SET synchronous_commit = off")
        return connection

    connection = loop.run_until_complete(prepare())
    yield Ground(loop, connection)
    loop.run_until_complete(connection.close())
    loop.run_until_complete(on_server(f"DROP DATABASE {name} WITH (FORCE)"))
    loop.close()


@pytest.mark.parametrize("examples", [25, pytest.param(400, marks=[pytest.mark.heavy, pytest.mark.timeout(900)])])
def test_a_breaker_behaves_like_its_model(ground: Ground, examples: int) -> None:
    happened: Counter[str] = Counter()

    class Machine(BreakerMachine):
        def __init__(self) -> None:
            super().__init__(ground)

        def teardown(self) -> None:
            happened.update(self.model.events)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            deadline=None,
            database=None,
            print_blob=True,
            derandomize=examples < 100,  # new cases are looked for in `make test-heavy`
            suppress_health_check=list(HealthCheck),
        ),
    )
    rare = {
        what
        for what in ("opened", "half_opened", "reopened", "closed", "tripped", "reset", "asked_to_wait")
        if happened[what] < 5
    }
    assert not rare, f"hardly ever tried: {rare} of {happened}"
