"""Corrections: what a person types instead of what was read, and what follows from it.

A **record** is the JSON of a `Reading`. `revise` reads what was typed, in the document's locale, and makes the next
record from the one before: only what was typed changes, then computed values, checks and confidence are made anew by
the functions that made them first. `apply` replays the changes of a log: record n and its changes make record n + 1.
"""

from __future__ import annotations

from waybill_documents.corrections.changes import CORRECTED, Change, Typed
from waybill_documents.corrections.choices import choices
from waybill_documents.corrections.records import read_record
from waybill_documents.corrections.reviser import Revised, apply, revise

__all__ = ["CORRECTED", "Change", "Revised", "Typed", "apply", "choices", "read_record", "revise"]
