"""What the janitor does, in order: the platform's own tasks, and what the engine and the installed pipelines bring.

First comes what somebody waits for, then rows are removed, then the objects they named, then the janitor looks for what
should not be, and last it cleans its own house.
"""

from __future__ import annotations

from collections.abc import Sequence

from waybill.janitor.task import Task, TaskTools
from waybill.pipelines import brought
from waybill.retention import PipelineRetention, RetentionRule
from waybill_engine import register_kinds
from waybill_engine import retention as engine
from waybill_janitor.settings import JanitorSettings
from waybill_janitor.tasks.abandoned import Abandoned
from waybill_janitor.tasks.audit import AuditTrail
from waybill_janitor.tasks.counters import Counters
from waybill_janitor.tasks.dead_letters import DeadLetters
from waybill_janitor.tasks.erasures import Erasures
from waybill_janitor.tasks.garbage import Garbage
from waybill_janitor.tasks.health import Health
from waybill_janitor.tasks.history import History
from waybill_janitor.tasks.leases import Leases
from waybill_janitor.tasks.missing import Missing
from waybill_janitor.tasks.orphans import Orphans
from waybill_janitor.tasks.pods import Pods
from waybill_janitor.tasks.retention import Retention
from waybill_janitor.tasks.sequences import Sequences
from waybill_janitor.tasks.shelf import ShelfDays, Shelving
from waybill_janitor.tasks.workers import Workers


def all_tasks(tools: TaskTools) -> list[Task]:
    for kinds in brought("kinds"):
        register_kinds(kinds)  # a listener of what is removed may enqueue another pipeline's jobs by their kind's name
    pipelines: list[PipelineRetention] = brought("retention")
    settings = tools.settings_of(JanitorSettings)
    kinds_with_rows = kinds_with_rows_of(pipelines)
    of_engine = engine.retention(
        events_days=settings.events_ttl_days,
        jobs_days=settings.jobs_ttl_days,
        keepers=[one.keeps_job for one in pipelines if one.keeps_job is not None],
        kinds_with_rows=kinds_with_rows,
    )
    everything = [of_engine, *pipelines]
    objects = [one.objects for one in everything if one.objects is not None]
    # A job's row goes after all that the pipelines have of it.
    rules = [rule for one in (*pipelines, of_engine) for rule in one.rules]
    tasks: list[Task] = [
        Pods(tools),  # before the leases: it knows more about why a worker is gone
        Leases(tools),
        Workers(tools),
        Sequences(tools),
        Erasures(tools, brought("erasure")),
        *(task(tools) for one in pipelines for task in one.tasks_before),
        *(Retention(tools, each) for each in by_task(rules)),
        *(task(tools) for one in pipelines for task in one.tasks_after),
        ShelfDays(tools, kinds_with_rows),
        Shelving(tools),
        Counters(tools, [rows for one in everything for rows in one.served_rows]),
        Abandoned(tools),
        Orphans(tools, objects, [prefix for one in everything for prefix in one.prefixes]),
        Garbage(tools),
        Missing(tools, objects),
        DeadLetters(tools),
        Health(tools, ["garbage", *(table for one in everything for table in one.tables)]),
        AuditTrail(tools),
        History(tools),
    ]
    _refuse_twins([task.name for task in tasks])
    return tasks


def kinds_with_rows_of(pipelines: Sequence[PipelineRetention]) -> list[str] | None:
    """The kinds whose jobs must go one by one. None if a pipeline keeps jobs and does not say of which kinds."""
    if any(one.keeps_job is not None and not one.kinds_with_rows for one in pipelines):
        return None
    return [kind for one in pipelines for kind in one.kinds_with_rows]


def by_task(rules: Sequence[RetentionRule]) -> list[list[RetentionRule]]:
    """The rules in their order, those of one task together."""
    _refuse_twins([rule.name for rule in rules])
    tasks: dict[str, list[RetentionRule]] = {}
    for rule in rules:
        tasks.setdefault(rule.task or rule.name, []).append(rule)
    return list(tasks.values())


def _refuse_twins(names: Sequence[str]) -> None:
    """Ages and figures are kept by name, so two pipelines must not share one."""
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ValueError(f"several pipelines call a retention rule or a task {', '.join(twins)}")
