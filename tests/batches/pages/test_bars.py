"""Bars are drawn to scale, without anything that the content policy refuses."""

from __future__ import annotations

import re

from waybill_batches.pages.bars import bar


def test_parts_stand_one_after_the_other_to_scale() -> None:
    made = bar({"complete": 3, "failed": 1, "cancelled": 0}, most=8)
    assert re.findall(r'class="(\w+)" x="([\d.]+)" y="0" width="([\d.]+)"', made) == [
        ("complete", "0.0", "375.0"),
        ("failed", "375.0", "125.0"),
    ]
    assert "style" not in made


def test_a_small_part_is_seen_and_no_part_is_cut_off() -> None:
    made = bar({"complete": 99_999, "failed": 1}, most=100_000)
    assert 'width="4"' in made.replace("4.0", "4")
    assert made.startswith('<svg class="stack" viewBox="0 0 1003.99 10"')
    assert "rect" not in bar({"complete": 0}, most=0)
