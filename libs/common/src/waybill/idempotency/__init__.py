"""Idempotency keys: a repeated request is done once and gets the same answer."""

from waybill.idempotency.models import KeyState
from waybill.idempotency.store import (
    Begun,
    HolderReplaced,
    KeyRecord,
    begin,
    fail,
    find,
    fingerprint,
    finish,
    forget,
    purge,
    should_reprocess,
)

__all__ = [
    "Begun",
    "HolderReplaced",
    "KeyRecord",
    "KeyState",
    "begin",
    "fail",
    "find",
    "fingerprint",
    "finish",
    "forget",
    "purge",
    "should_reprocess",
]
