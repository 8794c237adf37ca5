"""Problem documents about a document, as a parser writes them. The service gives it the members that they all have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waybill_documents.faults import DocumentRejected


def problem_of(members: Mapping[str, Any], fault: DocumentRejected) -> dict[str, Any]:
    """What is wrong with a document, completely."""
    problem = {
        **members,
        "detail": fault.message,
        "key": fault.says.key,
        "params": fault.says.params,
        "fault": fault.code.value,
        "findings": [finding.to_json() for finding in fault.findings],
    }
    if fault.partial is not None:
        problem["partial"] = fault.partial
    return problem
