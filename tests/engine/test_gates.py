"""A lane opens when the last of its gates does; a gate where others are busy is left alone for longer each time."""

from __future__ import annotations

import random
from collections.abc import Mapping

from support.store import Store, job, lane
from waybill_engine.fair_share import FairShare
from waybill_engine.rules import Cap, Rules


def fair_store(weights: Mapping[str, float] | None = None, seed: int = 0) -> Store:
    """A store and shares that have looked once, at nothing."""
    fair_share = FairShare(rng=random.Random(seed))
    fair_share.apply(Rules(weights=weights or {}))
    fair_share.found({}, fair_share.announcements)
    return Store(fair_share)


def test_a_lane_opens_when_the_last_of_its_gates_does_and_what_is_past_is_no_opening() -> None:
    store = fair_store()
    tenant, kind = Cap(1, "a", None, 1), Cap(2, None, "work", 1)
    store.cap(tenant, kind)
    store.add(lane("a", "work"), [1])
    assert store.fair_share.next_opening(0.0) is None
    store.fair_share.gates.close(tenant, 0.0, 0.1)
    store.fair_share.gates.close(kind, 0.0, 30.0)
    assert store.fair_share.next_opening(0.0) == 30.0
    assert store.fair_share.next_opening(0.2) == 30.0, "a moment that has passed would make the claimer spin"
    assert not store.fair_share.any_open(0.2)
    assert store.fair_share.next_opening(31.0) is None
    assert store.fair_share.any_open(31.0)


def test_a_gate_somebody_else_is_at_is_left_alone_for_longer_each_time() -> None:
    store = fair_store()
    gate = Cap(1, "a", None, 1)
    store.cap(gate)
    store.add(lane("a", "work"), [1])
    pauses = []
    for _ in range(9):
        store.fair_share.gates.back_off(gate, 0.0)
        pauses.append(store.fair_share.next_opening(0.0))
    assert pauses[0] == 0.01
    assert pauses[-1] == 0.5
    assert pauses == sorted(pauses)  # type: ignore[type-var]


def test_the_end_of_a_run_opens_the_caps_on_that_job_and_no_others() -> None:
    store = fair_store()
    tenant, kind, both, other = (
        Cap(1, "a", None, 1),
        Cap(2, None, "work", 1),
        Cap(3, "a", "work", 1),
        Cap(4, "b", None, 1),
    )
    store.cap(tenant, kind, both, other)
    gates = store.fair_share.gates
    for cap in (tenant, kind, both, other):
        gates.close(cap, 0.0)
    gates.reopen_caps([job(lane("c", "rest"), 1)])
    assert [cap.id for cap in (tenant, kind, both, other) if gates.all_open([cap], 0.0)] == []
    gates.reopen_caps([job(lane("a", "work"), 2)])
    assert [cap.id for cap in (tenant, kind, both, other) if gates.all_open([cap], 0.0)] == [1, 2, 3]
