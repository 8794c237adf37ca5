"""What is known about a request so far, for its answer, its log line and its span."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from structlog.contextvars import bind_contextvars

from waybill.messages import msg
from waybill_gateway import refusals

_JOB_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:-]{0,99}")


@dataclass(slots=True)
class Exchange:
    """What we know about a request so far, for its response and its log line."""

    proven: bool = False
    """Whether the caller is one of our services."""
    began: float = field(default_factory=time.monotonic)
    job_id: str | None = None
    mapping: str | None = None
    """As it was asked for."""
    used_mapping: str | None = None
    """The one that the document was converted with; another one if the document chose it."""
    status: int | None = None
    """Of the answer; None if there is none, because the client has gone."""
    facts: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)

    def identify(self, job_id: str) -> None:
        """Set the job's id from a header or a field. Both may name it if they agree."""
        if not _JOB_ID.fullmatch(job_id):
            raise refusals.bad_form(msg("gateway.job_id"))
        if self.job_id not in (None, job_id):
            raise refusals.bad_form(msg("gateway.two_job_ids"))
        self.job_id = job_id
        bind_contextvars(job_id=job_id)

    def headers(self) -> dict[str, str]:
        known = {"Vary": "Accept"}
        if self.job_id is not None:
            known["X-Job-Id"] = self.job_id
        if self.used_mapping is not None:
            known["X-Mapping"] = self.used_mapping
        if self.stages:
            known["X-Stage"] = ", ".join(f"{name};dur={took:.1f}" for name, took in self.stages.items())
        return known

    def attributes(self) -> dict[str, str | int]:
        """What this request adds to its span. Nothing of it was chosen by whoever wrote the document."""
        known = {f"waybill.document.{name}": self.facts.get(name) for name in ("bytes", "kind", "mapping", "page")}
        known["http.response.status_code"] = self.status
        return {name: value for name, value in known.items() if value is not None}

    def worked(self, waited: float, parsed: float) -> None:
        """Add the times of a call to a parser; an answer that is made in parts takes several."""
        for name, seconds in (("wait_seconds", waited), ("parse_seconds", parsed)):
            self.facts[name] = round(self.facts.get(name, 0.0) + seconds, 4)

    def members(self) -> dict[str, str]:
        """What this request adds to a problem document."""
        return {} if self.job_id is None else {"job_id": self.job_id}


def seconds_since(moment: float) -> float:
    return round(time.monotonic() - moment, 4)
