"""Pauses between restarts grow to a few seconds, and begin anew after a calm minute."""

from __future__ import annotations

from waybill_cli.local.pauses import CALM, Pauses


def test_what_is_killed_again_and_again_is_back_within_seconds() -> None:
    pauses = Pauses()
    assert [pauses.after(1) for _ in range(6)] == [0.5, 1, 2, 4, 5, 5]


def test_a_calm_minute_makes_up_for_everything_before_it() -> None:
    pauses = Pauses()
    for _ in range(6):
        pauses.after(1)
    assert pauses.after(CALM) == 0.5
    assert pauses.after(CALM - 1) == 1
