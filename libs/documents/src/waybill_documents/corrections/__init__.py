"""Corrections: a person replaces values that were read, and everything that depends on them is computed again.

A **record** is the JSON of a `Reading`. `revise` reads what was typed, in the document's locale, and makes the next
record: only the typed values change, then the same functions as in a conversion make computed values, checks and
confidence. `apply` replays the changes of a log: record n and its changes make record n + 1.
"""

from __future__ import annotations

from waybill_documents.corrections.changes import CORRECTED, Change, Typed
from waybill_documents.corrections.choices import choices
from waybill_documents.corrections.records import read_record
from waybill_documents.corrections.reviser import RevisedReading, apply, revise

__all__ = ["CORRECTED", "Change", "RevisedReading", "Typed", "apply", "choices", "read_record", "revise"]
