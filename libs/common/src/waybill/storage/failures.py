"""What an object store did wrong, in our words.

obstore's own texts repeat the store's answer, which may hold an access key's name or a signed request. Only what is
known to be harmless is kept: the status, the store's code for it, and how the connection failed.
"""

from __future__ import annotations

import re
from typing import Any

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from waybill.errors import IoFailure

FAULTS = (BaseError, OSError)
"""What obstore raises: its own exceptions, and FileNotFoundError and its kin for what Python has a name for."""

_STATUS = re.compile(r"status code: (\d{3})|status: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_KIND = re.compile(r"kind: (Connect|Timeout|Interrupted|Request|Decode)\b")
_UNREACHABLE = frozenset({"Connect", "Timeout", "Interrupted", "Request", "Decode"})


def failure(error: BaseException) -> IoFailure:
    """The error as one of ours; always worth trying again, for a person may mend what we cannot."""
    detail = _detail(error)
    status = detail.get("status", 0)
    if detail.get("code") in ("NoSuchBucket", "ContainerNotFound"):
        return IoFailure("The bucket for documents and results does not exist.", detail=detail)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in (401, 403):
        return IoFailure("The storage for documents and results does not let this service in.", detail=detail)
    if status in (429, 503):
        return IoFailure("The storage is busy. We try again by ourselves.", detail=detail)
    if detail.get("connection") == "Timeout":
        return IoFailure("The storage took too long to answer. We try again by ourselves.", detail=detail)
    if detail.get("connection") in _UNREACHABLE:
        return IoFailure("The storage cannot be reached. We try again by ourselves.", detail=detail)
    return IoFailure(detail=detail)


def beyond_the_end(error: BaseException) -> bool:
    """Whether it says that a range starts where the object has already ended."""
    return _detail(error).get("status") == 416


def no_bucket(error: BaseException) -> bool:
    """Whether not only the object is missing, but all there should be around it."""
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
