"""How many seconds each folder's tests may take together, and how many they took.

The whole suite stays under eight minutes on two idle cores because each folder keeps to its part. A busy machine takes
longer, so going over is shown at the end of a run and fails nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

BUDGET = {
    "api": 60,
    "browser": 160,
    "cli": 60,
    "common": 110,
    "convert": 160,
    "documents": 90,
    "endtoend": 30,
    "engine": 370,
    "gateway": 130,
    "janitor": 45,
    "local": 55,
    "migrations": 60,
    "pipelines": 20,
    "repository": 10,
    "worker": 10,
}
"""Seconds by folder: set-up, test and clean-up of all its tests, three running side by side."""


def lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """One line for each folder that took at least a second."""
    took: dict[str, float] = defaultdict(float)
    for report in reports:
        folder = report.nodeid.removeprefix("tests/").partition("/")[0]
        took[folder] += report.duration
    return [
        f"{folder:<12}{seconds:6.0f} s of {BUDGET.get(folder, 0):>4} s"
        + (" - over its budget" if seconds > BUDGET.get(folder, 0) else "")
        for folder, seconds in sorted(took.items())
        if seconds >= 1
    ]
