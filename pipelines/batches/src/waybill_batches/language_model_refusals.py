"""What an answer other than 200 means, and whether the same question in another form may be answered."""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from waybill.errors import LanguageModelFailed, WaybillError
from waybill.messages import msg
from waybill_batches.language_model_errors import (
    FileNotTaken,
    LanguageModelBusy,
    LanguageModelMistrusted,
)

_DEFAULT_WAIT = 15.0
"""Seconds to wait for an endpoint that has had enough of us and does not say for how long."""
_LONGEST_REASON = 200
_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too many (?:input )?tokens|prompt is too long|input is too long"
    r"|exceeds? the (?:available|model'?s) context",
    re.IGNORECASE,
)
_FILTERED_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})


@dataclass(frozen=True, slots=True)
class ModelRefusal:
    """An answer other than 200, as far as it can be understood."""

    status: int
    code: str
    """A word for programs, if there is one."""
    param: str
    """Which part of the request it is about, if it says so."""
    why: str
    """Its sentence."""
    retry_after: str = ""
    date: str = ""

    @classmethod
    def read(cls, status: int, headers: Mapping[str, str], body: bytes, *, hide: str | None = None) -> ModelRefusal:
        """Some endpoints repeat the key that they refuse: `hide` is shown nowhere."""
        said = _error_in(body)
        param, why, code, kind = (_text(said.get(name), hide) for name in ("param", "message", "code", "type"))
        code = code if isinstance(said.get("code"), str) else kind
        return cls(status, code, param, why, headers.get("retry-after", ""), headers.get("date", ""))

    @property
    def is_too_long(self) -> bool:
        """The model cannot read as much text at once."""
        said = self.code in _TOO_LONG_CODES or _TOO_LONG.search(self.why) is not None
        return self.status == 413 or (self.status in (400, 422) and said)

    @property
    def is_of_form(self) -> bool:
        """The request itself is refused, so one without its refinements may be taken."""
        return self.status in (400, 422) and self.code not in _FILTERED_CODES

    def names(self, parameter: str) -> bool:
        """Whether it complains about this parameter of the request."""
        return self.param.startswith(parameter) or re.search(rf"\b{re.escape(parameter)}\b", self.why) is not None

    @property
    def error(self) -> WaybillError:
        if self.code in _NO_CREDIT or self.status == 402:
            return LanguageModelMistrusted(msg("batches.model.no_credit"))
        if self.status == 429:
            return LanguageModelBusy(msg("batches.model.busy"), retry_after=self._wait(_DEFAULT_WAIT))
        if self.status in (401, 403, 407):
            return LanguageModelMistrusted(msg("batches.model.key_refused", status=self.status))
        if self.status == 404:
            return LanguageModelMistrusted(msg("batches.model.not_found"))
        if self.status < 300:
            return LanguageModelFailed(msg("batches.model.no_completion"))
        if self.status < 400:
            return LanguageModelMistrusted(msg("batches.model.redirected"))
        if self.status >= 500:
            return LanguageModelFailed(msg("batches.model.broken", status=self.status), retry_after=self._wait(None))
        if self.is_too_long:
            return FileNotTaken(msg("batches.model.text_too_long"))
        if self.code in _FILTERED_CODES:
            return FileNotTaken(msg("batches.model.filtered"))
        if self.status in (408, 409, 425):
            return LanguageModelFailed(msg("batches.model.broken", status=self.status))
        return FileNotTaken(msg("batches.model.not_taken", status=self.status, why=self.why or "-"))

    def _wait(self, default: float | None) -> float | None:
        """The seconds in `Retry-After`: a number, or a date by the endpoint's own clock."""
        said = self.retry_after.strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", said, re.ASCII):
            return float(said)
        until = _date(said)
        if until is None:
            return default
        return max(0.0, (until - (_date(self.date) or datetime.now(UTC))).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _error_in(body: bytes) -> dict[str, Any]:
    """`{"error": {…}}`, `{"error": "…"}`, `{"message": "…"}` and `{"detail": …}` are all in use."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        return {}
    said = found.get("error", found)
    if isinstance(said, str):
        return {"message": said}
    if not isinstance(said, dict):
        return {}
    return said if "message" in said or "detail" not in said else {**said, "message": json.dumps(said["detail"])}


def _text(value: Any, hide: str | None) -> str:
    text = "".join(
        character if character.isprintable() else " " for character in str(value if value is not None else "")
    )
    if hide:
        text = text.replace(hide, "***")
    return text[:_LONGEST_REASON]
