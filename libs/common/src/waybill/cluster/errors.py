"""What the API server answers when it does not do what we asked, as exceptions.

Their sentences are the server's own, which name the object and the permission that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from waybill.errors import Code, WaybillError

_LONGEST = 1000
"""Characters of an answer that are worth keeping."""

_NOT_OF_THE_SCHEMA = "failed to create typed patch object"
"""How the server answers an apply with a field that does not exist. It says 500, but the object is wrong."""


class ClusterError(WaybillError):
    """The root: any answer that is not the one we hoped for."""


class NotReachable(ClusterError):
    """There is no cluster here: neither a service account nor a kubeconfig."""


class Away(ClusterError):
    """The server does not answer, or is too busy. Trying again later may help."""


class Withheld(ClusterError):
    """We did not ask at all, because we must not write any more."""


class WatchCut(Away):
    """A watch ended in the middle. Nothing is lost: it is resumed from the last event."""


class NotAllowed(ClusterError):
    """We are not allowed to, or not known."""

    code = Code.FORBIDDEN


class NoSuchObject(ClusterError):
    code = Code.NOT_FOUND


class ChangedMeanwhile(ClusterError):
    """Somebody else changed the object in the meantime, or owns a field that we wanted to change."""

    code = Code.CONFLICT


class AlreadyThere(ChangedMeanwhile):
    """Something of that name exists."""


class HistoryGone(ClusterError):
    """The server no longer knows the version from which we wanted to go on: everything must be listed again."""


class Invalid(ClusterError):
    """The server does not accept the object. Trying again cannot help."""

    code = Code.VALIDATION_ERROR


_BY_STATUS: Mapping[int, type[ClusterError]] = {
    400: Invalid,
    401: NotAllowed,
    403: NotAllowed,
    404: NoSuchObject,
    409: ChangedMeanwhile,
    410: HistoryGone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: Away,
}


def refusal(status: int, body: bytes, headers: Mapping[str, str]) -> ClusterError:
    """The exception for an answer that is none of the 2xx."""
    said = _status_object(body)
    kind = _BY_STATUS.get(status, Away if status >= 500 else ClusterError)
    if kind is ChangedMeanwhile and said.get("reason") == "AlreadyExists":
        kind = AlreadyThere
    sentence = str(said.get("message") or body.decode("utf-8", "replace").strip() or "no reason given")
    if _NOT_OF_THE_SCHEMA in sentence:
        kind = Invalid
    return kind(
        f"the API server answers {status}: {sentence[:_LONGEST]}", retry_after=_seconds(headers.get("Retry-After"))
    )


def told(status: Mapping[str, Any]) -> ClusterError:
    """The exception for an error that arrives inside a watch."""
    code = status.get("code")
    return refusal(code if isinstance(code, int) else 500, json.dumps(status).encode(), {})


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
