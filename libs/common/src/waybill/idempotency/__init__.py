"""Idempotency: asked twice, done once, answered twice."""

from waybill.idempotency.models import KeyState
from waybill.idempotency.store import (
    Begun,
    HolderReplaced,
    Record,
    begin,
    fail,
    find,
    fingerprint,
    finish,
    purge,
    should_reprocess,
)

__all__ = [
    "Begun",
    "HolderReplaced",
    "KeyState",
    "Record",
    "begin",
    "fail",
    "find",
    "fingerprint",
    "finish",
    "purge",
    "should_reprocess",
]
