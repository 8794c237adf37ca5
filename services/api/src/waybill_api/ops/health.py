"""Is everything well? What is wrong, in the order in which somebody should look at it, and what to do about it.

It judges by the same facts as `explain` does for one job: paused queues, breakers, kinds that no worker serves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from waybill.messages import Message, msg
from waybill_api.ops.facts import Facts
from waybill_engine import State
from waybill_engine.breaker_models import BreakerState
from waybill_engine.samples import Sample

LATE = timedelta(minutes=5)
"""A job that has been runnable for longer is late: 99 % of jobs are to end within this time."""

_ENOUGH = 10
"""Failures of a kind count only if at least so many of its jobs ended in the last hour."""

_STALE = 4
"""A sample that is so many intervals old is no longer believed."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    bad: bool
    """Work stands still. Otherwise it only deserves a look."""
    says: Message
    place: str
    """The part of the page that has more."""


def findings(facts: Facts, interval: float) -> list[HealthFinding]:
    """What is wrong, the worst first. Nothing if everything is well."""
    found = [*_of_sample(facts, interval), *_of_workers(facts), *_of_breakers(facts), *_of_queues(facts)]
    found += [*_of_kinds(facts), *_of_failures(facts), *_of_dead_letters(facts)]
    return sorted(found, key=lambda one: not one.bad)  # stable: within each, in the order above


def _of_sample(facts: Facts, interval: float) -> Iterator[HealthFinding]:
    if facts.sample is None:
        yield HealthFinding(False, msg("ops.health.no_sample"), "ops-kinds")
    elif facts.sample.age > max(_STALE * interval, 60.0):
        yield HealthFinding(False, msg("ops.health.old_sample", count=round(facts.sample.age / 60)), "ops-kinds")


def _of_workers(facts: Facts) -> Iterator[HealthFinding]:
    alive = [one for one in facts.workers if one.state == "active" and not one.expired]
    if not alive:
        waiting = _queued(facts.sample)
        yield HealthFinding(True, msg("ops.health.no_worker", count=waiting), "ops-workers")
    if silent := sum(one.expired for one in facts.workers):
        yield HealthFinding(False, msg("ops.health.silent", count=silent), "ops-workers")


def _of_breakers(facts: Facts) -> Iterator[HealthFinding]:
    for one in facts.breakers:
        waits = {"dependency": one.name, "count": one.blocked}
        if one.state is BreakerState.OPEN and one.open_until is None:
            yield HealthFinding(True, msg("ops.health.tripped", **waits), "ops-breakers")
        elif one.state is BreakerState.OPEN:
            yield HealthFinding(True, msg("ops.health.open", **waits), "ops-breakers")
        elif one.state is BreakerState.HALF_OPEN:
            yield HealthFinding(False, msg("ops.health.half_open", **waits), "ops-breakers")
        elif one.cooldown_until is not None and one.cooldown_until > facts.now:
            yield HealthFinding(False, msg("ops.health.cooling", **waits), "ops-breakers")


def _of_queues(facts: Facts) -> Iterator[HealthFinding]:
    for one in facts.queues:
        if one.paused_at is not None:
            yield HealthFinding(False, msg("ops.health.paused", queue=one.name), "ops-queues")


def _of_kinds(facts: Facts) -> Iterator[HealthFinding]:
    if facts.sample is None:
        return
    served = {kind for one in facts.workers if one.state == "active" and not one.expired for kind in one.kinds}
    held = _held_back(facts)
    for one in facts.sample.kinds:
        if one.queued and served and one.kind not in served:
            yield HealthFinding(True, msg("ops.health.not_served", kind=one.kind, count=one.queued), "ops-kinds")
        elif one.oldest_runnable_at is not None and one.kind in served - held:
            late = facts.now - one.oldest_runnable_at
            if late > LATE:
                minutes = round(late.total_seconds() / 60)
                yield HealthFinding(False, msg("ops.health.late", kind=one.kind, count=minutes), "ops-waiting")


def _held_back(facts: Facts) -> set[str]:
    """Kinds whose waiting is explained already: a breaker or a paused queue holds them back."""
    away = [one for one in facts.breakers if one.state is not BreakerState.CLOSED]
    paused = [one for one in facts.queues if one.paused_at is not None]
    return {kind for one in away for kind in one.kinds} | {kind for one in paused for kind in (*one.kinds, *one.served)}


def _of_failures(facts: Facts) -> Iterator[HealthFinding]:
    ended: Counter[str] = Counter()
    succeeded: Counter[str] = Counter()
    for one in facts.finished_kinds:
        if one.outcome != State.CANCELLED:
            ended[one.kind] += one.jobs
        if one.outcome == State.SUCCEEDED:
            succeeded[one.kind] += one.jobs
    for kind, count in sorted(ended.items()):
        failed = count - succeeded[kind]
        if count >= _ENOUGH and 2 * failed > count:
            yield HealthFinding(False, msg("ops.health.failing", kind=kind, failed=failed, count=count), "ops-kinds")


def _of_dead_letters(facts: Facts) -> Iterator[HealthFinding]:
    if count := sum(one.jobs for one in facts.dead_letters.groups):
        key = "ops.health.many_dead_letters" if facts.dead_letters.more else "ops.health.dead_letters"
        yield HealthFinding(False, msg(key, count=count), "ops-dead")


def _queued(sample: Sample | None) -> int:
    return sum(one.queued for one in sample.kinds) if sample is not None else 0
