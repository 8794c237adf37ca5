"""What the janitor does, in this order: first what somebody waits for, then removing rows, then what they named, then
looking for what should not be, and at last its own house."""

from waybill_convert.janitor_documents import Documents
from waybill_convert.janitor_durations import Durations
from waybill_convert.janitor_results import Results
from waybill_convert.janitor_tombstones import Tombstones
from waybill_janitor.task import Task, Tools
from waybill_janitor.tasks.counters import Counters
from waybill_janitor.tasks.dead_letters import DeadLetters
from waybill_janitor.tasks.erasures import Erasures
from waybill_janitor.tasks.events import Events
from waybill_janitor.tasks.garbage import Garbage
from waybill_janitor.tasks.health import Health
from waybill_janitor.tasks.history import History
from waybill_janitor.tasks.jobs import Jobs
from waybill_janitor.tasks.leases import Leases
from waybill_janitor.tasks.missing import Missing
from waybill_janitor.tasks.orphans import Orphans
from waybill_janitor.tasks.workers import Workers

TASKS = (
    Leases,
    Workers,
    Erasures,
    Durations,
    Documents,
    Results,
    Events,
    Jobs,
    Tombstones,
    Counters,
    Orphans,
    Garbage,
    Missing,
    DeadLetters,
    Health,
    History,
)


def all_tasks(tools: Tools) -> list[Task]:
    return [each(tools) for each in TASKS]
