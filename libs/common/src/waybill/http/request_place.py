"""Where a request went: the path as it was declared, and the job that it is about.

Visitors write what they like into a path, so neither logs nor traces nor the audit trail show one.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from starlette.types import Scope


def route_of(scope: Scope) -> str | None:
    """The declared path, such as `/api/jobs/{job_id}`. None if no route has taken the request."""
    declared: str | None = getattr(scope.get("route"), "path", None)
    return declared


def job_of(scope: Scope) -> str | None:
    """The job's id in the path; None if there is none, or if it is no id."""
    with suppress(ValueError):
        return str(uuid.UUID(str(scope.get("path_params", {}).get("job_id"))))
    return None
