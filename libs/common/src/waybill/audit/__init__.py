"""The audit trail: who did what, on what, when, and how that ended. One table, `audit_events`, for the whole product.

Whoever changes something calls `record` in the transaction that changes it. Whoever refuses something calls `refuse`,
which counts, so that a storm of refusals costs nobody anything. `trail` says who is acting. Events are linked into a
chain of hashes by `chain`, checked by `verification` and cut by `cut`, when they are old.
"""

from waybill.audit.actors import SYSTEM, Actor, Trail, acting_as, command_actor, trail
from waybill.audit.recorder import Outcome, record
from waybill.audit.refusals import RefusalCounter, refuse

__all__ = [
    "SYSTEM",
    "Actor",
    "Outcome",
    "RefusalCounter",
    "Trail",
    "acting_as",
    "command_actor",
    "record",
    "refuse",
    "trail",
]
