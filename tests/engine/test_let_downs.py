"""Outages of a second to an hour, with one document or thousands: none is dead-lettered, and hardly a call is wasted.

Hours pass in simulated time, on a real database and with the engine's own claims, ends and reports.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from support.breakers import CONVERTER, POLICY, breaker_events
from support.simulated_fleet import SimulatedFleet
from waybill.db.database import Connection
from waybill.errors import GatewayTimedOut, GatewayUnavailable, GatewayUnreachable

WARM_UP = 30.0
"""Seconds for which the dependency is well at first."""


@dataclass(frozen=True)
class Outage:
    """How the dependency answers while it is down."""

    error: Callable[[], Exception]
    answers_after: float = 0.05
    most_attempts: int = 0
    """What it may cost a job. A wrong answer may be a document's fault, if others succeeded just then."""


OUTAGES = {
    "refused": Outage(lambda: GatewayUnreachable(dependency=CONVERTER)),
    "wrong answers": Outage(lambda: GatewayUnavailable(dependency=CONVERTER), most_attempts=1),
    "silence": Outage(lambda: GatewayTimedOut(dependency=CONVERTER), answers_after=60.0, most_attempts=1),
    "retry after 0": Outage(lambda: GatewayUnavailable(dependency=CONVERTER, retry_after=0)),
    "retry after 20": Outage(lambda: GatewayUnavailable(dependency=CONVERTER, retry_after=20)),
}
ONE, A_FEW, THOUSANDS = "one document", "40 documents a minute", "thousands of documents"
SLOTS = 150


def most_calls(seconds: float) -> int:
    """How many calls may be wasted: what is under way when it begins, and then a few each time somebody tries."""
    tries = 12 + seconds / POLICY.open_at_most
    return int(2 * SLOTS + 8 * tries)


async def play(connection: Connection, how: str, traffic: str, seconds: float) -> SimulatedFleet:
    """Traffic, an outage in the middle of it, and all that follows until no document is left."""
    outage, begins, ends = OUTAGES[how], WARM_UP, WARM_UP + seconds

    def answer(now: float, _job: uuid.UUID) -> tuple[float, Exception | None]:
        return (outage.answers_after, outage.error()) if begins <= now < ends else (1.0, None)

    fleet = SimulatedFleet(connection, answer, workers=2, slots=SLOTS // 2)
    await fleet.start()
    every = 15.0
    for at in range(0, int(WARM_UP), int(every)):
        await fleet.enqueue(10)
        await fleet.run_until(at + every)
    if traffic == ONE:
        await fleet.enqueue(1)
    elif traffic == THOUSANDS:
        await fleet.enqueue(2000)
    else:
        for number in range(
            int(min(seconds, 900.0) / every) + 4
        ):  # a quarter of an hour of it shows what there is to see
            await fleet.enqueue(10)
            await fleet.run_until(begins + (number + 1) * every)
    await fleet.run_until(ends)
    await fleet.run_until(ends + 3600.0, or_all_ended=True)
    return fleet


SECONDS = (1.0, 10.0, 60.0, 300.0, 1000.0, 3600.0)
USUAL = [
    ("refused", 1.0, A_FEW),
    ("refused", 60.0, A_FEW),
    ("refused", 3600.0, ONE),
    ("refused", 3600.0, THOUSANDS),
    ("wrong answers", 60.0, A_FEW),
    ("wrong answers", 3600.0, ONE),
    ("wrong answers", 3600.0, THOUSANDS),
    ("silence", 300.0, A_FEW),
    ("retry after 0", 3600.0, ONE),
    ("retry after 0", 300.0, THOUSANDS),
]
EVERY = [(how, seconds, traffic) for how in OUTAGES for seconds in SECONDS for traffic in (ONE, A_FEW, THOUSANDS)]


@pytest.mark.parametrize(
    ("how", "seconds", "traffic"),
    [*USUAL, *(pytest.param(*one, marks=pytest.mark.heavy) for one in EVERY if one not in USUAL)],
)
async def test_no_outage_up_to_an_hour_costs_a_document(
    hot: Connection, clock: object, how: str, seconds: float, traffic: str
) -> None:
    fleet = await play(hot, how, traffic, seconds)
    states = {row["state"]: row["count"] for row in await hot.fetch("SELECT state, count(*) FROM jobs GROUP BY 1")}
    assert states.keys() == {"succeeded"}, states
    assert await hot.fetchval("SELECT max(attempts) FROM jobs") <= OUTAGES[how].most_attempts
    wasted = [at for at in fleet.calls if WARM_UP <= at < WARM_UP + seconds]
    assert len(wasted) <= (40 if traffic == ONE else most_calls(seconds))
    assert fleet.now <= WARM_UP + seconds + 2 * POLICY.open_at_most + 200.0, "its end is noticed in time"


async def test_a_document_that_it_chokes_on_ends_and_delays_nobody(hot: Connection, clock: object) -> None:
    """Others come every ten minutes: each starts at once, and each that succeeds makes the bad one pay."""
    bad: list[uuid.UUID] = []
    fleet = SimulatedFleet(
        hot, lambda _now, job: (0.5, GatewayUnavailable(dependency=CONVERTER) if job in bad else None)
    )
    await fleet.start()
    bad += await fleet.enqueue(1)
    for number in range(1, 13):
        await fleet.run_until(number * 600.0)
        await fleet.enqueue(1)
    await fleet.run_until(7300.0)
    assert await hot.fetchval("SELECT state FROM jobs WHERE id = $1", bad[0]) == "dead_letter"
    others = await hot.fetch("SELECT state, started_at - created_at AS waited FROM jobs WHERE id <> $1", bad[0])
    assert {row["state"] for row in others} == {"succeeded"}
    assert max(row["waited"].total_seconds() for row in others) < 70, "as soon as the fleet looked"
    assert await breaker_events(hot) == []
    assert len(fleet.calls) < 60
