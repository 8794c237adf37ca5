"""Durations are as precise as they deserve."""

from __future__ import annotations

import pytest

from waybill.web.languages import ENGLISH, LANGUAGES
from waybill_batches.pages.durations import duration


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0.44, "0.4 ms"),
        (12.5, "12 ms"),
        (999, "999 ms"),
        (3_210, "3.2 s"),
        (61_000, "61 s"),
        (600_000, "10 min"),
        (10_800_000, "3 h"),
        (-5, "0.0 ms"),
    ],
)
def test_in_english(milliseconds: float, words: str) -> None:
    assert duration(milliseconds, ENGLISH) == words


def test_in_another_language() -> None:
    assert duration(3_210, LANGUAGES["id"]) == "3,2 dtk"
