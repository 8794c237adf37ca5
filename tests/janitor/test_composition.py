"""The janitor's tasks come from the platform, the engine and the installed pipelines, in an order that matters."""

from __future__ import annotations

import uuid

import pytest

from support.janitor import Janitor
from waybill.retention import PipelineRetention
from waybill_convert.retention import RETENTION
from waybill_engine import kind_named, registry
from waybill_janitor.composition import all_tasks, by_task, kinds_with_rows_of


def test_rows_go_before_the_objects_they_named_and_jobs_after_all_that_pipelines_have_of_them(cleaner: Janitor) -> None:
    names = [task.name for task in all_tasks(cleaner.tools)]
    assert names == [
        "pods",
        "leases",
        "workers",
        "sequences",
        "erasures",
        "durations",
        "batch_files",
        "batch_results",
        "documents",
        "results",
        "events",
        "jobs",
        "tombstones",
        "catalogues",
        "mappings",
        "shelf_days",
        "shelf",
        "counters",
        "abandoned",
        "orphans",
        "garbage",
        "missing",
        "dead_letters",
        "health",
        "audit",
        "history",
    ]


def test_listeners_of_what_it_removes_find_every_kind_by_its_name(
    cleaner: Janitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_kinds", {})
    all_tasks(cleaner.tools)
    assert kind_named("convert_pdf").queue == "convert"


def test_rules_of_one_task_are_reported_as_one() -> None:
    assert [[rule.name for rule in rules] for rules in by_task(RETENTION.rules)] == [
        ["documents"],
        ["results", "downloads"],
    ]


def test_two_pipelines_cannot_share_a_rules_name() -> None:
    with pytest.raises(ValueError, match="several pipelines call a retention rule or a task documents"):
        by_task([*RETENTION.rules, RETENTION.rules[0]])


def test_days_of_ended_jobs_go_whole_only_if_every_pipeline_says_of_which_kinds_it_has_rows() -> None:
    async def keeps(_connection: object, _job_ids: object, _until: object) -> set[uuid.UUID]:
        return set()

    says = PipelineRetention(keeps_job=keeps, kinds_with_rows=("note",))
    keeps_silent = PipelineRetention(keeps_job=keeps)
    assert kinds_with_rows_of([PipelineRetention(), says]) == ["note"]
    assert kinds_with_rows_of([says, keeps_silent]) is None
