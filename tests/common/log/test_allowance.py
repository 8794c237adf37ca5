"""Lines that are left out are counted by the next one."""

from __future__ import annotations

from waybill.log.allowance import LineAllowance


def test_a_second_has_so_many_lines_and_the_next_one_says_what_is_missing() -> None:
    now = 10.2
    allowance = LineAllowance(3, clock=lambda: now)
    assert [allowance.take() for _ in range(5)] == [0, 0, 0, None, None]
    now = 10.9
    assert allowance.take() is None
    now = 11.0
    assert [allowance.take(), allowance.take()] == [3, 0]
