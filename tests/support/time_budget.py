"""How many seconds each folder's tests may take together, how many they took, and which tests start first.

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
    "local": 70,
    "migrations": 60,
    "observability": 40,
    "pipelines": 20,
    "repository": 10,
    "worker": 10,
}
"""Seconds by folder: set-up, test and clean-up of all its tests, three running side by side."""

LONG = (
    "tests/local/test_up.py",
    "tests/local/test_observe.py",
    "tests/observability/test_running_system.py",
    "tests/observability/test_rules.py",
    "tests/pipelines/test_tutorial.py",
    "tests/migrations/test_rolling_upgrade.py",
    "tests/engine/test_state_machine.py",
    "tests/engine/worker/test_families.py",
    "tests/engine/worker/test_rescue.py",
    "tests/engine/worker/test_heartbeat.py",
    "tests/engine/worker/test_breaker.py",
    "tests/migrations/test_runner.py",
)
"""Files with tests that take ten seconds and more."""


def long_ones_first(items: list[pytest.Item]) -> None:
    """Sort the tests so that a long one cannot be the last, when the other processes have nothing left to do."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


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
