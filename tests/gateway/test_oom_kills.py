"""The kernel's count of OOM kills is read where there is one, and missed by nobody where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from waybill_gateway.pool.oom_kills import OomKills


def test_a_kill_is_noticed_once(tmp_path: Path) -> None:
    file = tmp_path / "memory.events"
    file.write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0\n")
    kills = OomKills(file)
    assert kills.any_new() is False
    file.write_text("low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\noom_group_kill 0\n")
    assert kills.any_new() is True
    assert kills.any_new() is False


@pytest.mark.parametrize("content", [None, "", "low 0\n", "oom_kill many\n", "a line of words\n"])
def test_a_system_that_does_not_tell_is_no_trouble(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "memory.events"
    if content is not None:
        file.write_text(content)
    assert OomKills(file).any_new() is None
