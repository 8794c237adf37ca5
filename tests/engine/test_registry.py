"""Kinds and handlers by name: what a worker serves, and how one pipeline starts another's job without importing it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.engine import row
from waybill.db.database import Connection
from waybill.errors import NotFound
from waybill_engine import (
    JobContext,
    JobKind,
    NewJob,
    RetryPolicy,
    Schedule,
    declares,
    enqueue_family,
    handles,
    kind_named,
    known_kinds,
    register_kinds,
    registry,
)
from waybill_engine.kinds import SELFTEST
from waybill_engine.registry import declared_schedules, load_handlers

RESIZE = JobKind("resize", queue="images", time_limit=7, retry=RetryPolicy(retries=1), max_crashes=2)


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("_handlers", "_kinds", "_schedules"):
        monkeypatch.setattr(registry, known, {} if known != "_kinds" else {SELFTEST.name: SELFTEST})


async def work(payload: dict[str, Any], job: JobContext) -> None: ...


async def other_work(payload: dict[str, Any], job: JobContext) -> None: ...


def test_the_engines_own_kinds_are_known_from_the_start() -> None:
    assert known_kinds() == {"selftest": SELFTEST}


def test_registered_kinds_are_found_by_name() -> None:
    register_kinds([RESIZE])
    register_kinds([RESIZE])  # by a second part of the same program
    assert kind_named("resize") is RESIZE
    assert list(known_kinds()) == ["resize", "selftest"]


def test_a_kind_is_found_as_the_settings_want_it_which_are_read_once() -> None:
    asked: list[JobKind] = []

    def configured(kind: JobKind) -> JobKind:
        asked.append(kind)
        return replace(kind, max_crashes=9)

    kind = replace(RESIZE, configured=configured)
    register_kinds([kind])
    handles(kind)(work)  # which is the same kind, whatever the settings make of it
    assert [kind_named("resize").max_crashes for _ in range(3)] == [9, 9, 9]
    assert asked == [kind]


def test_a_handler_brings_its_kind_along() -> None:
    handles(RESIZE)(work)
    assert kind_named("resize") is RESIZE


def test_a_kind_that_nobody_registered_is_refused_with_the_list_of_those_there_are() -> None:
    register_kinds([RESIZE])
    with pytest.raises(NotFound) as refused:
        kind_named("rezise")
    assert refused.value.message == ("There is no kind 'rezise'. Known kinds: resize, selftest.")


def test_two_different_kinds_cannot_share_a_name() -> None:
    register_kinds([RESIZE])
    with pytest.raises(ValueError, match="two kinds are called 'resize'"):
        register_kinds([JobKind("resize")])


def test_a_kind_has_one_handler() -> None:
    handles(RESIZE)(work)
    handles(RESIZE)(work)  # its module was imported under another name
    with pytest.raises(ValueError, match="kind 'resize' has two handlers"):
        handles(RESIZE)(other_work)


def test_a_worker_serves_the_kinds_it_was_asked_to() -> None:
    handles(RESIZE)(work)
    handles(JobKind("rotate"))(work)
    assert set(load_handlers([])) == {"resize", "rotate"}
    assert set(load_handlers([], ["rotate"])) == {"rotate"}
    with pytest.raises(LookupError, match="no handler for flip; there are handlers for: resize, rotate"):
        load_handlers([], ["flip"])


def test_a_schedule_is_declared_once() -> None:
    nightly = declares(Schedule("nightly", RESIZE, "30 2 * * *", tenant="acme"))
    declares(Schedule("nightly", RESIZE, "30 2 * * *", tenant="acme"))
    assert declared_schedules() == [nightly]
    with pytest.raises(ValueError, match="schedule 'nightly' is declared twice"):
        declares(Schedule("nightly", RESIZE, "30 3 * * *", tenant="acme"))


async def test_a_child_named_by_its_kind_has_that_kinds_rules(hot: Connection) -> None:
    register_kinds([RESIZE])
    family = await enqueue_family(
        hot, NewJob(JobKind("album"), "acme"), [NewJob(kind_named("resize"), "acme", {"width": 80})]
    )
    child = await row(hot, family.children[0].id)
    assert (child["kind"], child["queue"], child["parent_id"]) == ("resize", "images", family.parent.id)
    assert (child["time_limit"], child["max_attempts"], child["max_crashes"]) == (7, 2, 2)
