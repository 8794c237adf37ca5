"""When a worker process counts as alive, and when as ready."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from waybill.telemetry.loop_watch import LoopWatch
from waybill_engine.worker.probes import Probes


@dataclass
class Worker:
    registered: bool = True
    draining: bool = False
    busy: bool = False
    database_is_well: bool = True
    renewal_tried_at: float = field(default_factory=time.monotonic)


@pytest.fixture
def probes() -> Probes:
    made = Probes(LoopWatch(), lease_ttl=60.0)
    made.worker = Worker()
    return made


def test_a_worker_that_does_its_work_is_alive_and_ready(probes: Probes) -> None:
    assert (probes.alive(), probes.ready()) == (None, None)


def test_a_worker_that_starts_is_alive_and_not_ready() -> None:
    probes = Probes(LoopWatch(), lease_ttl=60.0)
    assert (probes.alive(), probes.ready()) == (None, "it is starting")
    probes.worker = Worker(registered=False, renewal_tried_at=-1e9)
    assert (probes.alive(), probes.ready()) == (None, "it is starting")


def test_a_worker_that_was_told_to_stop_is_ready_as_long_as_a_job_runs(probes: Probes) -> None:
    probes.worker = Worker(draining=True, busy=True)
    assert (probes.alive(), probes.ready()) == (None, None)
    probes.worker = Worker(draining=True)
    assert (probes.alive(), probes.ready()) == (None, "it is shutting down")


def test_an_outage_of_the_database_is_no_reason_to_restart_a_worker(probes: Probes) -> None:
    probes.worker = Worker(database_is_well=False, renewal_tried_at=time.monotonic() - 100)
    assert (probes.alive(), probes.ready()) == (None, "the database does not answer")


def test_a_worker_whose_renewal_hangs_is_not_alive(probes: Probes) -> None:
    probes.worker = Worker(renewal_tried_at=time.monotonic() - 121)
    assert probes.alive() == probes.ready() == "nobody has tried to renew the lease for 121 s"


def test_a_worker_whose_loop_stands_still_is_not_alive() -> None:
    watch = LoopWatch()
    watch.turned_at -= 31
    probes = Probes(watch, lease_ttl=60.0)
    probes.worker = Worker()
    assert probes.alive() == probes.ready() == "the event loop has stood still for 31 s"
