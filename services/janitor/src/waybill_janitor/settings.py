"""The janitor's settings. How long a pipeline's things are kept is in the pipeline's own settings."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from waybill.config.settings import CommonSettings
from waybill.config.values import Bare, Days, Named, Seconds


def _never(value: object) -> object:
    return None if value == "never" else value


class JanitorSettings(CommonSettings):
    """What the janitor understands: how long things are kept, and how long it may take."""

    title: ClassVar[str] = "Janitor"

    events_ttl_days: Annotated[Days, Bare("EVENTS_TTL_DAYS")] = Field(
        90.0, le=36500, description="How many days the history of ended jobs, breakers and the janitor is kept."
    )
    jobs_ttl_days: Annotated[Days, Bare("JOBS_TTL_DAYS")] = Field(
        90.0,
        le=36500,
        description="How many days an ended job stays listed. It goes when nothing of it is kept any more.",
    )
    audit_ttl_days: Days = Field(
        400.0,
        ge=1,
        le=36500,
        description="How many days the audit trail is kept. Events go in their order, so one that must stay keeps all"
        " later ones.",
    )
    shelve_after: Annotated[Seconds | None, Named("duration or `never`"), BeforeValidator(_never)] = Field(
        86400.0,
        ge=3600,
        description="How long after its end a job leaves the table in which jobs wait and run. It is listed, retried"
        " and deleted as before. `never` keeps all jobs there.",
    )
    worker_ttl_days: Days = Field(
        7.0, le=36500, description="How many days a worker that stopped or went missing stays in the list of workers."
    )
    orphan_grace: Seconds = Field(
        86400.0,
        ge=0,
        description="How old a stored object must be to be removed when no row names it. Longer than any upload or job"
        " takes: an object is stored before the row that names it.",
    )
    dead_letter_alarm: Seconds = Field(
        86400.0,
        gt=0,
        description="The age at which a job in the dead-letter queue is reported: somebody should have looked.",
    )
    janitor_interval: Seconds = Field(
        900.0, gt=0, description="How often `waybill up` has it run. In a cluster the CronJob's schedule says so."
    )
    janitor_scan_interval: Seconds = Field(
        86400.0,
        description="How often it compares all of the storage with all rows, both ways. Object stores charge for it.",
    )
    janitor_time_limit: Seconds = Field(
        1800.0, gt=0, description="How long one run may take. What is left is the next run's."
    )
    janitor_task_time_limit: Seconds = Field(
        300.0, gt=0, description="How long one of its tasks may take, so that none keeps the others waiting."
    )
