"""How many seconds each folder's tests may take together, how many they took, and which tests start first.

The whole suite stays under eight minutes on two idle cores because each folder keeps to its part. A busy machine takes
longer, so going over is shown at the end of a run and fails nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

BUDGET = {
    "api": 85,
    "batches": 230,
    "browser": 165,
    "cli": 95,
    "common": 130,
    "convert": 190,
    "documents": 85,
    "endtoend": 75,
    "engine": 540,
    "gateway": 190,
    "janitor": 65,
    "local": 105,
    "migrations": 55,
    "chart": 45,
    "images": 30,
    "observability": 40,
    "operator": 110,
    "passport": 60,
    "pipelines": 25,
    "repository": 10,
    "worker": 12,
}
"""Seconds by folder: set-up, test and clean-up of all its tests, four running side by side.

Together they may be 1,880: eight minutes of four processes that need ten seconds to start. Some of it is left for
folders that come.
"""

LONG = (
    "tests/local/test_up.py",
    "tests/local/test_observe.py",
    "tests/observability/test_running_system.py",
    "tests/pipelines/test_tutorial.py",
    "tests/migrations/test_rolling_upgrade.py",
    "tests/migrations/test_runner.py",
    "tests/endtoend/test_own_mappings.py",
    "tests/engine/test_state_machine.py",
    "tests/engine/worker/test_breaker.py",
    "tests/engine/worker/test_families.py",
    "tests/engine/worker/test_heartbeat.py",
    "tests/engine/worker/test_observation.py",
    "tests/engine/worker/test_rescue.py",
    "tests/janitor/test_histories.py",
    "tests/janitor/test_kill.py",
)
"""Files with tests that take ten seconds and more."""


def long_ones_first(items: list[pytest.Item]) -> None:
    """Sort the tests so that a long one cannot be the last, when the other processes have nothing left to do."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


_PROCESSOR = "seconds of the processor"


def note_processor(report: pytest.TestReport, seconds: float) -> None:
    """Remember with the report how much of the processor this part of its test used."""
    report.user_properties.append((_PROCESSOR, seconds))


def lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """One line for each folder that took at least a second."""
    took: dict[str, float] = defaultdict(float)
    used: dict[str, float] = defaultdict(float)
    for report in reports:
        folder = report.nodeid.removeprefix("tests/").partition("/")[0]
        took[folder] += report.duration
        used[folder] += sum(float(str(each)) for name, each in report.user_properties if name == _PROCESSOR)
    return [
        f"{folder:<14}{seconds:6.0f} s of {BUDGET.get(folder, 0):>4} s"
        + (f", {used[folder]:5.0f} s of the processor" if used[folder] else "")
        + (" - over its budget" if seconds > BUDGET.get(folder, 0) else "")
        for folder, seconds in sorted(took.items())
        if seconds >= 1
    ]
