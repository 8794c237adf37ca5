"""Who gets the next parser: a document that is repeated alone runs beside no other, and holds nobody up for long."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from support.parser_pool import running, started
from waybill_gateway.pool import Unavailable

TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


async def test_after_a_kill_the_document_runs_alone_and_its_neighbours_are_unharmed(tmp_path: Path) -> None:
    async with running(tmp_path, processes=3) as bench:
        await bench.wait_for_processes(3)
        neighbour_started, neighbour_go = tmp_path / "neighbour", tmp_path / "neighbour-go"
        victim_started, victim_go = tmp_path / "victim", tmp_path / "victim-go"
        neighbour = asyncio.create_task(
            bench.ask("sleep", started=str(neighbour_started), until=str(neighbour_go), seconds=600)
        )
        neighbours_pid = await started(neighbour_started)
        victim = asyncio.create_task(bench.ask("sleep", started=str(victim_started), until=str(victim_go), seconds=600))
        first = await started(victim_started)
        os.kill(first, signal.SIGKILL)
        await bench.wait_for_processes(2)
        await bench.wait_for_processes(3)
        newcomer = asyncio.create_task(bench.ask("echo", say="new", wait=600))
        with pytest.raises(Unavailable):
            await bench.ask("echo", wait=0.1)
        assert int(victim_started.read_text()) == first, "the victim waits until nothing runs beside it"
        neighbour_go.touch()
        assert (await neighbour)["pid"] == neighbours_pid
        second = await started(victim_started, after=first)
        with pytest.raises(Unavailable):
            await bench.ask("echo", wait=0.1)
        assert not newcomer.done(), "nothing starts beside the victim"
        victim_go.touch()
        assert (await victim)["pid"] == second
        assert (await newcomer)["said"] == "new"


async def test_a_neighbour_that_takes_long_holds_nobody_up_for_long(tmp_path: Path) -> None:
    async with running(tmp_path, processes=2, quiet=0.1) as bench:
        await bench.wait_for_processes(2)
        neighbour_started, neighbour_go = tmp_path / "neighbour", tmp_path / "neighbour-go"
        neighbour = asyncio.create_task(
            bench.ask("sleep", started=str(neighbour_started), until=str(neighbour_go), seconds=600)
        )
        await started(neighbour_started)
        victim = asyncio.create_task(bench.ask("sleep", started=str(tmp_path / "victim"), until=str(tmp_path / "go")))
        first = await started(tmp_path / "victim")
        os.kill(first, signal.SIGKILL)
        await started(tmp_path / "victim", after=first)
        assert not neighbour.done()
        (tmp_path / "go").touch()
        assert (await victim)["pid"]
        neighbour_go.touch()
        assert (await neighbour)["pid"]


async def test_all_whose_parsers_were_killed_at_once_get_their_answers(tmp_path: Path) -> None:
    async with running(tmp_path, processes=3) as bench:
        await bench.wait_for_processes(3)
        go = tmp_path / "go"
        calls = [asyncio.create_task(bench.ask("sleep", started=str(tmp_path / n), until=str(go))) for n in "abc"]
        pids = [await started(tmp_path / name) for name in "abc"]
        waiting = asyncio.create_task(bench.ask("echo", say="waited"))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        go.touch()
        assert len({(await call)["pid"] for call in calls} | set(pids)) == 6, "each in a fresh process"
        assert (await waiting)["said"] == "waited"


async def test_a_document_that_gives_up_waiting_to_be_alone_lets_the_others_pass(tmp_path: Path) -> None:
    async with running(tmp_path, processes=2) as bench:
        await bench.wait_for_processes(2)
        neighbour = asyncio.create_task(bench.ask("sleep", started=str(tmp_path / "neighbour")))
        await started(tmp_path / "neighbour")
        victim = asyncio.create_task(bench.ask("sleep", started=str(tmp_path / "victim")))
        os.kill(await started(tmp_path / "victim"), signal.SIGKILL)
        await bench.wait_for_processes(1)
        newcomer = asyncio.create_task(bench.ask("echo", say="new"))
        await bench.wait_for_processes(2)
        victim.cancel()
        await asyncio.wait([victim])
        assert (await newcomer)["said"] == "new"
        neighbour.cancel()
        await asyncio.wait([neighbour])
