"""How long things are kept.

`holds`: legal holds. `ages`: how long a tenant keeps what. `rules`: what a pipeline tells the janitor. `models`: the
tables.
"""

from waybill.retention.ages import LONGEST_DAYS, ages_of, set_ages
from waybill.retention.holds import LegalHold, hold, hold_of, let_holds_wait, refuse_if_held, release
from waybill.retention.rules import (
    IdRange,
    NamedObject,
    ObjectNames,
    PipelineRetention,
    RetentionRule,
    ServedRows,
    SettingsOf,
    StoredObject,
)

__all__ = [
    "LONGEST_DAYS",
    "IdRange",
    "LegalHold",
    "NamedObject",
    "ObjectNames",
    "PipelineRetention",
    "RetentionRule",
    "ServedRows",
    "SettingsOf",
    "StoredObject",
    "ages_of",
    "hold",
    "hold_of",
    "let_holds_wait",
    "refuse_if_held",
    "release",
    "set_ages",
]
