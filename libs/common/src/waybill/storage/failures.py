"""Turns errors of an object store into ours.

obstore's messages contain the store's response, which may include an access key's name or a signed request. We only
keep what is harmless: the status, the store's error code, and how the connection failed.
"""

from __future__ import annotations

import re
from typing import Any

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from waybill.errors import StorageFailed, StorageUnreachable
from waybill.messages import msg

FAULTS = (BaseError, OSError)
"""The exceptions of obstore: its own ones, and Python's FileNotFoundError and the like."""

_STATUS = re.compile(r"status code: (\d{3})|status: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_KIND = re.compile(r"kind: (Connect|Timeout|Interrupted|Request|Decode)\b")
_BROKEN_OFF = frozenset({"Interrupted", "Request", "Decode"})


def failure(error: BaseException) -> StorageFailed:
    """Our error for it. It is always retryable, because somebody may fix the cause."""
    detail = _detail(error)
    status = detail.get("status", 0)
    if detail.get("code") in ("NoSuchBucket", "ContainerNotFound"):
        return StorageFailed(msg("storage.no_bucket"), detail=detail)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in (401, 403):
        return StorageFailed(msg("storage.denied"), detail=detail)
    if status in (429, 503):
        return StorageFailed(msg("storage.busy"), detail=detail)
    if detail.get("connection") == "Timeout":
        return StorageFailed(msg("storage.slow"), detail=detail)
    if detail.get("connection") == "Connect":
        return StorageUnreachable(msg("storage.unreachable"), detail=detail)
    if detail.get("connection") in _BROKEN_OFF:
        return StorageFailed(msg("storage.unreachable"), detail=detail)
    return StorageFailed(detail=detail)


def beyond_the_end(error: BaseException) -> bool:
    """Whether the range starts after the object's end."""
    return _detail(error).get("status") == 416


def no_bucket(error: BaseException) -> bool:
    """Whether the whole bucket is missing."""
    return _detail(error).get("code") in ("NoSuchBucket", "ContainerNotFound")


def _detail(error: BaseException) -> dict[str, Any]:
    text = str(error)
    detail: dict[str, Any] = {"exception": type(error).__name__}
    if status := _STATUS.search(text):
        detail["status"] = int(status[1] or status[2])
    if code := _CODE.search(text):
        detail["code"] = code[1]
    elif kind := _KIND.search(text):
        detail["connection"] = kind[1]
    return detail
