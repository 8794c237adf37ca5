"""Sharing out, without a database: who is next, how far from fair it may be for a moment, and what is never forgotten.

How unfair a moment may be. A worker's claim of at most L jobs is shared out by what jobs are expected to cost. Whoever
has had the least is served, so between two tenants that both had jobs waiting all the time, the work they were given,
each divided by the tenant's weight, differs by at most L x G, where G is the largest cost / weight of one job. With
claims of one job and equal weights that is one job. Several processes add up. Added over all tenants: nobody waits for
more work than its share predicts plus W x L x G, W being the sum of all weights.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.store import Store, job, lane
from waybill_engine.fair_share import FairShare
from waybill_engine.lanes import Lane
from waybill_engine.rules import Cap, Rules

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fair_store(weights: Mapping[str, float] | None = None, seed: int = 0) -> Store:
    """A store and shares that have looked once, at nothing."""
    fair_share = FairShare(rng=random.Random(seed))
    fair_share.apply(Rules(weights=weights or {}))
    fair_share.found({}, fair_share.announcements)
    return Store(fair_share)


def keep_busy(store: Store, lanes: Mapping[Lane, Callable[[], int]], jobs: int, limit: int) -> None:
    """Claim so many jobs, while none of the lanes ever runs dry."""
    for where, cost in lanes.items():
        store.add(where, [cost() for _ in range(limit + 1)])
    left = jobs
    while left > 0:
        claimed_jobs = store.claim(min(limit, left))
        assert store.fair_share.any_open(store.now), "there is work, and nobody takes it"
        left -= len(claimed_jobs)
        for one in claimed_jobs:
            where = lane(one.tenant, one.kind, one.priority, one.queue)
            store.add(where, [lanes[where]()], tell=False)
        store.finish(claimed_jobs)


def work_of(store: Store, tenants: Sequence[str], before: Counter[str] | None = None) -> list[int]:
    return [store.work[tenant] - (before or Counter())[tenant] for tenant in tenants]


def always(cost: int) -> Callable[[], int]:
    return lambda: cost


def up_to(dearest: int, chance: random.Random) -> Callable[[], int]:
    return lambda: chance.randint(1, dearest)


# Fair by work, and how fair


@quick
@given(
    weights=st.lists(st.floats(0.2, 20), min_size=2, max_size=12),
    seed=st.integers(0, 2**32),
    limit=st.integers(1, 20),
)
def test_tenants_with_work_are_never_further_apart_than_one_claim(weights: list[float], seed: int, limit: int) -> None:
    chance = random.Random(seed)
    weight = {f"t{number}": one for number, one in enumerate(weights)}
    dearest = {tenant: chance.choice([1, 10, 1000]) for tenant in weight}
    store = fair_store(weight, seed)
    bound = limit * max(dearest[tenant] / weight[tenant] for tenant in weight)
    lanes = {lane(tenant): up_to(dearest[tenant], chance) for tenant in weight}
    for where, cost in lanes.items():
        store.add(where, [cost() for _ in range(limit + 1)])
    for _ in range(120):
        claimed_jobs = store.claim(limit)
        had = [store.work[tenant] / weight[tenant] for tenant in weight]
        assert max(had) - min(had) <= bound * (1 + 1e-9)
        for one in claimed_jobs:
            store.add(lane(one.tenant), [lanes[lane(one.tenant)]()], tell=False)


@pytest.mark.parametrize(("seed", "limit"), [(1, 1), (2, 10), (3, 50)])
def test_of_five_hundred_tenants_none_waits_longer_than_its_share_predicts(seed: int, limit: int) -> None:
    chance = random.Random(seed)
    tenants = [f"t{number}" for number in range(500)]
    weight = {tenant: chance.choice([0.5, 1.0, 1.0, 2.0, 5.0]) for tenant in tenants}
    dearest = {tenant: chance.choice([1, 5, 50]) for tenant in tenants}
    store = fair_store(weight, seed)
    for tenant in tenants:
        store.add(lane(tenant), [chance.randint(1, dearest[tenant]) for _ in range(limit + 1)])
    all_weights = sum(weight.values())
    bound = all_weights * limit * max(dearest[tenant] / weight[tenant] for tenant in tenants)

    def longest_wait(waiting: Iterable[str], work: Counter[str]) -> float:
        done = sum(work.values())
        return max(done - work[tenant] * all_weights / weight[tenant] for tenant in waiting)

    for _ in range(max(2500 // limit, 100)):
        before = store.work.copy()
        claimed_jobs = store.claim(limit)
        # Nobody has waited longer than right before being served, or at the end.
        assert longest_wait({one.tenant for one in claimed_jobs}, before) <= bound
        for one in claimed_jobs:
            store.add(lane(one.tenant), [chance.randint(1, dearest[one.tenant])], tell=False)
    assert longest_wait(tenants, store.work) <= bound


def test_with_equal_jobs_each_of_five_hundred_tenants_waits_for_one_job_of_each_other() -> None:
    store = fair_store()
    tenants = [f"t{number}" for number in range(500)]
    for tenant in tenants:
        store.add(lane(tenant), [1] * 5)
    for turn in range(1, 4):
        got = [store.claim(1)[0].tenant for _ in range(500)]
        assert sorted(got) == sorted(tenants), f"turn {turn}"


def test_one_claim_for_all_shares_as_many_small_ones_do() -> None:
    store = fair_store({"b": 2.0, "c": 5.0})
    for tenant in "abc":
        store.add(lane(tenant), [1] * 100)
    assert Counter(one.tenant for one in store.claim(80)) == {"a": 10, "b": 20, "c": 50}


def test_sharing_is_by_work_not_by_count() -> None:
    store = fair_store()
    keep_busy(store, {lane("big"): always(100), lane("small"): always(1)}, jobs=10_000, limit=10)
    big, small = work_of(store, ["big", "small"])
    assert abs(big - small) <= 10 * 100


# Coming, going, waiting


def test_one_file_behind_a_hundred_thousand_is_next() -> None:
    store = fair_store()
    store.add(lane("a"), [1] * 5000)  # what matters is that they do not run out
    for _ in range(50):
        store.claim(20)
    store.add(lane("b"), [1])
    assert [one.tenant for one in store.claim(1)] == ["b"]


def crowd(size: int) -> Store:
    """Many tenants with work that does not run out, all of them found by a look, and some of them served."""
    store = fair_store()
    for number in range(size):
        store.add(lane(f"crowd-{number}"), [1] * 20, tell=False)
    store.look()
    store.claim(10)
    return store


def test_a_newcomer_among_five_thousand_that_have_had_as_little_is_next() -> None:
    store = crowd(5000)
    store.add(lane("newcomer"), [1])
    assert [one.tenant for one in store.claim(1)] == ["newcomer"]


def test_whoever_sends_one_job_after_the_other_gets_no_more_than_those_who_sent_all_at_once() -> None:
    store = crowd(50)
    for _ in range(600):
        if not store.waiting.get(lane("sender")):
            store.add(lane("sender"), [1])
        store.claim(1)
    had = [store.work[f"crowd-{number}"] for number in range(50)]
    assert store.work["sender"] <= min(had) + 1


def test_newcomers_without_end_do_not_starve_those_who_wait() -> None:
    store = crowd(20)
    for turn in range(400):
        store.add(lane(f"newcomer-{turn % 40}"), [1])
        store.claim(1)
    assert min(store.work[f"crowd-{number}"] for number in range(20)) >= 400 // 60 - 1


def test_a_tenant_that_comes_late_has_its_share_from_then_on_and_no_more() -> None:
    store = fair_store()
    keep_busy(store, {lane("a"): always(3), lane("b"): always(3)}, jobs=3000, limit=7)
    before = store.work.copy()
    keep_busy(store, {lane(tenant): always(3) for tenant in "abc"}, jobs=3000, limit=7)
    had = work_of(store, "abc", before)
    assert max(had) - min(had) <= 2 * 7 * 3


def test_a_tenant_that_leaves_and_comes_back_gains_nothing() -> None:
    store = fair_store()
    store.add(lane("stays"), [5] * 4000)
    for _ in range(300):
        store.add(lane("hops"), [5, 5])
        while store.waiting[lane("hops")]:
            store.claim(3)
    assert store.work["hops"] <= store.work["stays"] + 3 * 5


def test_what_a_tenant_owed_when_it_left_it_still_owes_when_it_comes_back() -> None:
    store = fair_store()
    store.add(lane("a"), [1] * 3000)
    store.add(lane("b"), [1000])
    while store.waiting[lane("b")]:
        store.claim(1)
    store.claim(1)  # b's lane is found empty
    had = store.work["a"]
    store.add(lane("b"), [1] * 10)
    while len(store.waiting[lane("b")]) == 10:
        store.claim(1)
    assert store.work["a"] - had >= 990


def test_an_idle_tenant_saves_nothing_up() -> None:
    store = fair_store()
    keep_busy(store, {lane("a"): always(2)}, jobs=10, limit=5)
    store.add(lane("b"), [2])
    while store.waiting[lane("b")]:
        store.claim(1)
    keep_busy(store, {lane("a"): always(2)}, jobs=5000, limit=5)
    before = store.work.copy()
    keep_busy(store, {lane("a"): always(2), lane("b"): always(2)}, jobs=1000, limit=5)
    a, b = work_of(store, "ab", before)
    assert abs(a - b) <= 2 * 5 * 2


@pytest.mark.parametrize("most", [0, 1])
def test_a_tenant_held_back_by_a_cap_saves_nothing_up(most: int) -> None:
    store = fair_store()
    store.add(lane("a"), [1] * 4000)
    store.add(lane("b"), [1] * 4000)
    store.cap(Cap(1, "b", None, most))
    for _ in range(500):
        store.now += 0.1
        # b's one run, if it has one, never ends; a's do.
        store.finish([one for one in store.claim(5) if one.tenant == "a"])
    assert store.work["b"] == most
    before = store.work.copy()
    store.cap()
    for _ in range(200):
        store.finish(store.claim(5))
    a, b = work_of(store, "ab", before)
    assert abs(a - b) <= 2 * 5


def test_a_tenant_whose_one_kind_is_capped_has_its_share_with_the_others() -> None:
    store = fair_store()
    for where in (lane("a"), lane("b"), lane("b", "capped")):
        store.add(where, [1] * 5000)
    store.cap(Cap(1, None, "capped", 0))
    for _ in range(200):
        store.now += 0.1
        store.finish(store.claim(5))
    a, b = work_of(store, "ab")
    assert abs(a - b) <= 2 * 5


@pytest.mark.parametrize("full", [100, 2000])
def test_a_tenant_with_room_is_served_however_many_are_at_their_caps(full: int) -> None:
    """Closed gates are tried again after a while; until all have been tried, the others must have had their turn."""
    store = fair_store()
    for number in range(full):
        store.add(lane(f"t{number}"), [1])
    store.cap(*(Cap(number, f"t{number}", None, 0) for number in range(full)), Cap(full, "has_room", None, 5))
    served = 0
    for _ in range(3):
        store.add(lane("has_room"), [1])
        for _ in range(full // 10 + 2):
            claimed_jobs = store.claim(10)
            store.now += 0.005  # a claim's round trips
            served += len(claimed_jobs)
            if claimed_jobs:
                store.finish(claimed_jobs)
                break
    assert served == 3


def test_a_new_weight_counts_from_now_on() -> None:
    store = fair_store()
    lanes = {lane("a"): always(1), lane("b"): always(1)}
    keep_busy(store, lanes, jobs=1000, limit=4)
    before = store.work.copy()
    store.fair_share.apply(Rules(weights={"b": 4.0}))
    keep_busy(store, lanes, jobs=1000, limit=4)
    a, b = work_of(store, "ab", before)
    assert b == pytest.approx(4 * a, abs=5 * 4)
    before = store.work.copy()
    store.fair_share.apply(Rules())
    keep_busy(store, lanes, jobs=1000, limit=4)
    a, b = work_of(store, "ab", before)
    assert abs(a - b) <= 2 * 4


# Priority


def test_priority_goes_first_and_the_rest_is_served_when_it_is_empty() -> None:
    store = fair_store()
    for priority in (0, 10, -5):
        store.add(lane("a", priority=priority), [1] * 7)
        store.add(lane("b", priority=priority), [1] * 7)
    order: list[int] = []
    while store.fair_share.any_open(store.now):
        order += [one.priority for one in store.claim(3)]
    assert order == [10] * 14 + [0] * 14 + [-5] * 14


def test_what_is_capped_above_does_not_hold_up_what_is_below() -> None:
    store = fair_store()
    store.add(lane("a", "capped", priority=10), [1] * 5)
    store.add(lane("b", "also_capped", priority=5), [1] * 5)
    store.add(lane("c"), [1])
    store.cap(Cap(1, None, "capped", 0), Cap(2, None, "also_capped", 0))
    found = [one for _ in range(3) for one in store.claim(5)]
    assert [one.tenant for one in found] == ["c"]


def served_below(store: Store, high: int, low: int, seconds: int) -> list[float]:
    """When jobs of the low priority were claimed, one claim a second, while the high one never runs out."""
    moments = []
    for _ in range(seconds):
        store.add(lane("a", priority=high), [1] * 2)
        moments += [store.now for one in store.claim(1) if one.priority == low]
        store.now += 1.0
    return moments


def test_a_low_priority_is_late_and_never_starved() -> None:
    store = Store(FairShare(rng=random.Random(1), ageing=60.0))
    store.add(lane("b", priority=-2), [1] * 100)
    assert served_below(store, 0, -2, 500) == [120.0, 241.0, 362.0, 483.0]


def test_without_ageing_a_low_priority_waits_for_those_above() -> None:
    store = Store(FairShare(rng=random.Random(1)))
    store.add(lane("b", priority=-1), [1] * 100)
    assert served_below(store, 0, -1, 1_000) == []


def test_of_several_low_priorities_none_is_starved_and_the_highest_gets_nearly_everything() -> None:
    store = Store(FairShare(rng=random.Random(1), ageing=60.0))
    for priority in (-1, -5, -30):
        store.add(lane("b", priority=priority), [1] * 10_000)
    served: Counter[int] = Counter()
    for _ in range(20_000):
        store.add(lane("a"), [1] * 2)
        served.update(one.priority for one in store.claim(1))
        store.now += 1.0
    assert served[-1] > served[-5] > served[-30] >= 5
    assert served[0] > 0.97 * served.total()


def test_tenants_of_a_low_priority_take_turns_in_what_it_gets() -> None:
    store = Store(FairShare(rng=random.Random(1), ageing=60.0))
    for tenant in ("b", "c"):
        store.add(lane(tenant, priority=-1), [1] * 100)
    assert len(served_below(store, 0, -1, 1_230)) == 20
    assert store.work["b"] == store.work["c"] == 10


def test_a_low_priority_behind_a_full_cap_has_its_turn_and_begins_anew() -> None:
    store = Store(FairShare(rng=random.Random(1), ageing=60.0))
    store.cap(Cap(1, "b", None, 0))
    store.add(lane("b", priority=-1), [1] * 100)
    assert served_below(store, 0, -1, 300) == []
    store.cap()
    assert 1 <= len(served_below(store, 0, -1, 100)) <= 2


def test_a_tenant_that_comes_late_to_a_low_priority_is_not_punished_for_what_was_done_above() -> None:
    """While a tenant with a higher priority is served, those below wait; a newcomer below joins them as an equal."""
    store = fair_store()
    store.add(lane("b"), [1] * 3000)
    store.add(lane("c"), [1] * 3000)
    store.claim(2)
    keep_busy(store, {lane("vip", priority=10): always(1)}, jobs=2000, limit=10)
    while store.waiting[lane("vip", priority=10)]:
        store.claim(1)
    before = store.work.copy()
    store.add(lane("late"), [1] * 3000)
    for _ in range(60):
        store.claim(10)
    had = work_of(store, ["b", "c", "late"], before)
    assert max(had) - min(had) <= 2 * 10


# The kinds of one tenant


def test_a_hundred_thousand_of_one_kind_do_not_hold_up_one_of_another() -> None:
    store = fair_store()
    store.add(lane("a", "extract_file"), [1] * 5000)
    for _ in range(100):
        store.claim(10)
    store.add(lane("a", "summarize_run"), [1])
    assert "summarize_run" in [one.kind for one in store.claim(2)]


def test_kinds_of_one_tenant_take_turns_inside_its_share() -> None:
    store = fair_store()
    kinds = ("extract_file", "summarize_run", "deliver_webhook")
    lanes = {lane("a", kind): always(1) for kind in kinds} | {lane("b"): always(1)}
    keep_busy(store, lanes, jobs=2000, limit=6)
    a, b = work_of(store, "ab")
    assert abs(a - b) <= 2 * 6
    store = fair_store()
    for kind in kinds:
        store.add(lane("a", kind), [1] * 100)
    assert Counter(one.kind for one in store.claim(30)) == dict.fromkeys(kinds, 10)


def test_a_new_kind_takes_turns_with_its_sister_whatever_waits_at_a_lower_priority() -> None:
    store = fair_store()
    store.add(lane("a", "nightly"), [1] * 10)  # waits below, and had nothing yet
    keep_busy(store, {lane("a", "extract_file", priority=5): always(1)}, jobs=1000, limit=5)
    store.add(lane("a", "extract_file", priority=5), [1] * 200)
    store.add(lane("a", "summarize_run", priority=5), [1] * 200)
    kinds = Counter(one.kind for _ in range(20) for one in store.claim(5))
    assert abs(kinds["extract_file"] - kinds["summarize_run"]) <= 2 * 5


# Numbers


def test_after_enormous_work_tenants_with_small_jobs_still_take_turns() -> None:
    """Work is counted in bytes by some kinds and by the piece by others, in processes that live for months."""
    store = fair_store()
    keep_busy(store, {lane("big"): always(2**50)}, jobs=64, limit=4)
    while store.fair_share.any_open(store.now):
        store.claim(4)
    before = store.work.copy()
    keep_busy(store, {lane("a"): always(1), lane("b"): always(1)}, jobs=1000, limit=4)
    a, b = work_of(store, "ab", before)
    assert abs(a - b) <= 2 * 4


# What a plan may be


@st.composite
def worlds(draw: st.DrawFn) -> tuple[int, dict[Lane, list[int]], list[Cap]]:
    tenants = [f"t{number}" for number in range(draw(st.integers(1, 6)))]
    kinds = [f"k{number}" for number in range(draw(st.integers(1, 3)))]
    places = st.builds(
        lane, st.sampled_from(tenants), st.sampled_from(kinds), st.integers(-1, 1), st.sampled_from(["q", "r"])
    )
    lanes = draw(st.dictionaries(places, st.lists(st.integers(1, 1000), min_size=1, max_size=12), max_size=12))
    named = draw(
        st.lists(
            st.tuples(st.sampled_from([None, *tenants]), st.sampled_from([None, *kinds])).filter(any),
            unique=True,
            max_size=5,
        )
    )
    caps = [Cap(number, *who, draw(st.integers(0, 4))) for number, who in enumerate(named)]
    return draw(st.integers(0, 2**32)), lanes, caps


@quick
@given(worlds(), st.integers(0, 30))
def test_a_plan_asks_no_more_gates_than_it_has_to(
    world: tuple[int, dict[Lane, list[int]], list[Cap]], limit: int
) -> None:
    seed, lanes, caps = world
    store = fair_store(seed=seed)
    store.cap(*caps)
    for where, costs in lanes.items():
        store.add(where, costs)
    portions = store.fair_share.plan(limit, 0.0)
    plan = store.fair_share.plan_for_gates(limit, 0.0)
    assert sum(portion.quota for portion in portions) == (limit if lanes else 0)
    assert len({portion.lane for portion in plan.lanes}) == len(plan.lanes)
    assert len({portion.lane.priority for portion in plan.lanes}) <= 1
    planned = Counter(plan.lanes[turn].lane for turn in plan.turns[:limit])
    assert planned == Counter({portion.lane: portion.quota for portion in portions})
    assert store.fair_share.gates_of(plan.lanes) == store.fair_share.gates_of(portions)


@quick
@given(worlds(), st.integers(1, 15))
def test_everything_is_served_in_the_end_and_no_cap_is_exceeded_on_the_way(
    world: tuple[int, dict[Lane, list[int]], list[Cap]], limit: int
) -> None:
    seed, lanes, caps = world
    caps = [Cap(cap.id, cap.tenant, cap.kind, max(cap.most, 1)) for cap in caps]
    store = fair_store(seed=seed)
    chance = random.Random(seed)
    store.cap(*caps)
    for where, costs in lanes.items():
        store.add(where, costs)
    jobs = sum(map(len, lanes.values()))
    served = 0
    for _ in range(10 * jobs + 10):
        claimed_jobs = store.claim(limit)
        assert len(claimed_jobs) <= limit
        served += len(claimed_jobs)
        assert all(store.room(cap) >= 0 for cap in caps)
        if not store.fair_share.any_open(store.now):  # all gates are closed: some of what runs ends
            store.finish(chance.sample(store.running, chance.randint(1, len(store.running))) if store.running else [])
    assert served == jobs
    assert len(store.fair_share) == 0


@quick
@given(worlds(), st.integers(1, 15))
def test_the_same_chance_makes_the_same_choices(
    world: tuple[int, dict[Lane, list[int]], list[Cap]], limit: int
) -> None:
    seed, lanes, caps = world
    histories = []
    for _ in range(2):
        store = fair_store(seed=seed)
        store.cap(*caps)
        for where, costs in lanes.items():
            store.add(where, costs)
        histories.append([[one.id for one in store.claim(limit)] for _ in range(20)])
    assert histories[0] == histories[1]


def test_processes_that_start_together_do_not_all_begin_with_the_same_tenant() -> None:
    first: Counter[str] = Counter()
    for seed in range(300):
        store = Store(FairShare(rng=random.Random(seed)))
        for tenant in "abc":
            store.add(lane(tenant), [1], tell=False)
        store.look()
        first[store.claim(1)[0].tenant] += 1
    assert min(first[tenant] for tenant in "abc") > 50


def test_a_hundred_thousand_tenants_come_and_go_and_are_forgotten() -> None:
    store = fair_store()
    for number in range(100_000):
        where = lane(f"t{number}")
        store.fair_share.announce(where, job(where, 1).position)
        portions = store.fair_share.plan(2, 0.0)
        store.fair_share.served(portions, [job(where, 1)])
    assert len(store.fair_share) == 0
    assert len(store.fair_share._levels[0].shares) <= 20_000


# Where in a lane


def test_a_job_announced_while_a_claim_finds_its_lane_empty_is_found_by_the_next() -> None:
    store = fair_store()
    store.fair_share.announce(lane("a"), job(lane("a"), 1).position)
    portions = store.fair_share.plan(5, 0.0)
    claimed_jobs = store.take(portions)
    store.add(lane("a"), [1])
    store.fair_share.served(portions, claimed_jobs)
    assert len(store.claim(5)) == 1


def test_an_older_job_announced_while_a_claim_takes_newer_ones_is_found_by_the_next() -> None:
    store = fair_store()
    older, *newer = [job(lane("a"), number) for number in range(1, 5)]
    store.waiting[lane("a")] = newer
    store.fair_share.announce(lane("a"), newer[0].position)
    portions = store.fair_share.plan(3, 0.0)
    claimed_jobs = store.take(portions)
    store.waiting[lane("a")] = [older]
    store.fair_share.announce(lane("a"), older.position)
    store.fair_share.served(portions, claimed_jobs)
    assert store.claim(3) == [older]


def test_an_older_job_that_a_look_finds_while_a_claim_takes_newer_ones_is_found_by_the_next() -> None:
    store = fair_store()
    older, *newer = [job(lane("a"), number) for number in range(1, 6)]
    store.waiting[lane("a")] = newer
    store.look()
    portions = store.fair_share.plan(3, 0.0)
    claimed_jobs = store.take(portions)
    store.waiting[lane("a")].insert(0, older)
    store.look()
    store.fair_share.served(portions, claimed_jobs)
    assert older in store.claim(3)


def test_a_lane_announced_anew_while_a_claim_from_it_comes_back_empty_stays() -> None:
    """A look between them has forgotten the lane that the claim was planned for."""
    store = fair_store()
    store.fair_share.announce(lane("a"), job(lane("a"), 1).position)
    portions = store.fair_share.plan(3, 0.0)
    claimed_jobs = store.take(portions)
    store.look()
    store.add(lane("a"), [1])
    store.fair_share.served(portions, claimed_jobs)
    assert len(store.claim(3)) == 1


def test_what_was_announced_during_a_look_that_missed_it_stays() -> None:
    store = fair_store()
    news = store.fair_share.announcements
    heads: dict[Lane, object] = {}
    store.add(lane("a"), [1])
    store.fair_share.found(heads, news)  # type: ignore[arg-type]
    assert len(store.claim(1)) == 1


def test_a_job_that_came_back_unannounced_is_found_by_the_next_look() -> None:
    store = fair_store()
    jobs = [job(lane("a"), number) for number in range(1, 6)]
    store.waiting[lane("a")] = jobs[1:]
    store.look()
    assert store.claim(2) == jobs[1:3]
    store.waiting[lane("a")].insert(0, jobs[0])
    assert store.claim(1) == [jobs[3]]
    store.look()
    assert store.claim(2) == [jobs[0], jobs[4]]


def test_priorities_without_work_are_forgotten() -> None:
    store = fair_store()
    for priority in range(-2000, 0):
        where = Lane("default", "work", priority, "a", "a")
        store.fair_share.announce(where, job(where, 1).position)
    store.fair_share.found({}, store.fair_share.announcements)
    assert len(store.fair_share._levels) <= 64
