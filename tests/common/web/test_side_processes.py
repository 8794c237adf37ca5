"""Side processes: they answer, are reused, and are gone when nobody needs what they do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import side_work
from support.child_processes import is_alive
from support.patience import PATIENCE, until
from waybill.errors import NotFound
from waybill.web.side_processes import SideProcesses, WorkTookTooLong


@pytest.fixture
async def processes() -> AsyncIterator[SideProcesses]:
    made = SideProcesses(2, preload=["support.side_work"])
    yield made
    made.close()


async def test_calls_are_answered_by_another_process_which_is_used_again(processes: SideProcesses) -> None:
    first, said = await processes.run(side_work.whoami, "one", within=PATIENCE)
    second, _ = await processes.run(side_work.whoami, "two", within=PATIENCE)
    assert (said, first) == ("one", second)
    assert first != os.getpid()
    with pytest.raises(NotFound, match="no such job") as refused:
        await processes.run(side_work.refuse, within=PATIENCE)
    assert refused.value.key == "convert.no_job"
    assert (await processes.run(side_work.whoami, "three", within=PATIENCE))[0] == first


async def test_files_arrive_as_they_are_beside_other_arguments(processes: SideProcesses) -> None:
    files = [os.urandom(3_000_000), b"", None, b"\x00short"]
    assert await processes.run(side_work.echo, *files, {"a": [1]}, within=PATIENCE) == (*files, {"a": [1]})


async def test_work_that_nobody_waits_for_ends(processes: SideProcesses, tmp_path: Path) -> None:
    started = tmp_path / "started"
    calling = asyncio.create_task(processes.run(side_work.hang, started, within=PATIENCE))
    await until(lambda: started.exists() and bool(started.read_text()))
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    await until(lambda: not is_alive(int(started.read_text())))
    assert (await processes.run(side_work.whoami, "again", within=PATIENCE))[1] == "again"


async def test_work_that_takes_too_long_or_kills_its_process_is_a_503(processes: SideProcesses, tmp_path: Path) -> None:
    await processes.run(side_work.whoami, "warm", within=PATIENCE)
    with pytest.raises(WorkTookTooLong) as slow:
        await processes.run(side_work.hang, tmp_path / "started", within=0.05)
    assert (slow.value.status, slow.value.retry_after) == (503, 5)
    with pytest.raises(WorkTookTooLong):
        await processes.run(side_work.die, within=PATIENCE)
    assert (await processes.run(side_work.whoami, "again", within=PATIENCE))[1] == "again"


async def test_a_process_that_has_grown_is_replaced(processes: SideProcesses) -> None:
    pid, _ = await processes.run(side_work.grow, 250, within=PATIENCE)
    await until(lambda: not is_alive(pid))
    assert (await processes.run(side_work.whoami, "next", within=PATIENCE))[0] != pid
