"""A parser that is killed from outside condemns nobody.

After the rules come real parsers, killed by real signals during a real parse.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from support.child_processes import is_alive
from support.parser_pool import Bench, running, started
from support.patience import eventually
from waybill_gateway.pool import Crashed, Killed, PoolError, TookTooLong, TooMuchMemory, Unavailable
from waybill_gateway.pool.cause_of_death import cause_of_death
from waybill_gateway.pool.os_process import ProcessEnd
from waybill_gateway.sandbox.limits import Usage

TESTS = Path(__file__).parents[1]

CRASHES = {
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGTRAP,
    signal.SIGSYS,
}
MEMORY, SECONDS = 400_000_000, 60.0


def verdict(code: int, *, peak: int = 30_000_000, cpu: float = 3.0, last_words: str = "") -> type[PoolError]:
    """Of a parser that began this document with 25 MB and two seconds behind it."""
    end = ProcessEnd(code, Usage(peak, cpu), last_words)
    return type(cause_of_death(end, before=Usage(25_000_000, 2.0), memory=MEMORY, seconds=SECONDS))


@pytest.mark.parametrize("how", sorted(signal.Signals), ids=lambda how: how.name)
def test_a_signal_is_a_crash_only_if_a_process_brings_it_upon_itself(how: signal.Signals) -> None:
    assert verdict(-how) is (Crashed if how in CRASHES else Killed)
    much = verdict(-how, peak=MEMORY - 1)
    assert much is (TooMuchMemory if how in CRASHES else Killed), "only we set the limit, and it sends no signal"


def test_an_exit_is_the_parsers_own_doing() -> None:
    assert verdict(0) is verdict(3) is Crashed
    assert verdict(1, last_words="Traceback ...\nMemoryError") is TooMuchMemory
    assert verdict(134, peak=MEMORY // 2) is TooMuchMemory


def test_the_cpu_limit_is_told_from_the_same_signal_of_somebody_else() -> None:
    assert verdict(-signal.SIGXCPU, cpu=2.0 + SECONDS) is TookTooLong
    assert verdict(-signal.SIGXCPU, cpu=1.9 + SECONDS) is Killed


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with running(tmp_path) as bench:
        yield bench


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGSEGV],
    ids=lambda how: how.name,
)
async def test_a_document_whose_parser_is_killed_once_gets_its_answer(bench: Bench, how: signal.Signals) -> None:
    file, go = bench.folder / "started", bench.folder / "go"
    call = asyncio.create_task(bench.ask("sleep", started=str(file), until=str(go)))
    first = await started(file)
    os.kill(first, how)
    second = await started(file, after=first)
    go.touch()
    assert (await call)["pid"] == second


async def test_a_document_whose_parser_is_killed_again_is_not_condemned(bench: Bench) -> None:
    file = bench.folder / "started"
    with capture_logs() as lines:
        call = asyncio.create_task(bench.ask("sleep", started=str(file)))
        first = await started(file)
        os.kill(first, signal.SIGKILL)
        os.kill(await started(file, after=first), signal.SIGTERM)
        with pytest.raises(Killed):
            await call
    died = [line for line in lines if line["event"] == "parser_died"]
    assert [(line["cause"], line["code"]) for line in died] == [
        ("Killed", -signal.SIGKILL),
        ("Killed", -signal.SIGTERM),
    ]
    assert (await bench.ask("echo", say="next"))["said"] == "next"


async def test_a_large_document_that_is_killed_within_its_limit_is_not_too_large(bench: Bench) -> None:
    file, go = bench.folder / "started", bench.folder / "go"
    call = asyncio.create_task(bench.ask("hold", megabytes=250, started=str(file), until=str(go)))
    first = await started(file)
    os.kill(first, signal.SIGKILL)
    second = await started(file, after=first)
    go.touch()
    assert (await call)["pid"] == second


async def test_a_document_that_needs_more_than_its_limit_is_told_so_at_once(bench: Bench) -> None:
    file = bench.folder / "started"
    with capture_logs() as lines, pytest.raises(TooMuchMemory):
        await bench.ask("hold", megabytes=500, started=str(file))
    assert not file.exists()
    assert not [line for line in lines if line["event"] == "parse_repeated"]


async def test_a_crash_that_repeats_is_the_documents_fault(bench: Bench) -> None:
    with capture_logs() as lines, pytest.raises(Crashed):
        await bench.ask("segfault")
    assert [line["code"] for line in lines if line["event"] == "parser_died"] == [-signal.SIGSEGV] * 2


async def test_a_crash_is_repeated_in_a_process_that_has_parsed_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path, processes=2) as bench:
        await bench.wait_for_processes(2)
        go = tmp_path / "go"
        both = [asyncio.create_task(bench.ask("sleep", started=str(tmp_path / n), until=str(go))) for n in "ab"]
        used = {await started(tmp_path / name) for name in "ab"}
        go.touch()
        await asyncio.gather(*both)
        assert used == bench.pool.pids
        note = await bench.ask("crash_once", marker=str(tmp_path / "marker"))
        assert note["pid"] not in used


async def test_a_crash_after_a_kill_is_repeated_too(bench: Bench) -> None:
    file, go = bench.folder / "started", bench.folder / "go"
    with capture_logs() as lines:
        call = asyncio.create_task(bench.ask("sleep_and_crash", started=str(file), until=str(go)))
        os.kill(await started(file), signal.SIGKILL)
        go.touch()
        with pytest.raises(Crashed):
            await call
    codes = [line["code"] for line in lines if line["event"] == "parser_died"]
    assert codes == [-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGSEGV]


async def test_a_parser_that_was_stopped_from_outside_did_not_take_too_long(bench: Bench) -> None:
    file, go = bench.folder / "started", bench.folder / "go"
    call = asyncio.create_task(bench.ask("sleep", started=str(file), until=str(go), seconds=3))
    os.kill(await started(file), signal.SIGSTOP)
    go.touch()
    assert (await call)["pid"]


async def test_a_parser_that_was_stopped_while_idle_condemns_nobody(bench: Bench) -> None:
    first = (await bench.ask("echo"))["pid"]
    os.kill(first, signal.SIGSTOP)
    assert (await bench.ask("echo", seconds=3))["pid"] != first


async def test_what_a_killed_parser_had_started_ends_with_it(bench: Bench) -> None:
    file = bench.folder / "started"
    call = asyncio.create_task(bench.ask("fork", started=str(file)))
    grandchild = await started(file)
    os.kill(next(iter(bench.pool.pids)), signal.SIGKILL)

    async def gone() -> bool:
        return not is_alive(grandchild)

    await eventually(gone, what="the end of what it started")
    call.cancel()
    await asyncio.wait([call])


async def test_half_an_answer_of_a_killed_parser_is_gone_before_the_next_try(bench: Bench) -> None:
    file, go = bench.folder / "started", bench.folder / "go"
    call = asyncio.create_task(bench.ask("write_once", started=str(file), until=str(go)))
    first = await started(file)
    assert bench.result.exists()
    os.kill(first, signal.SIGKILL)
    await started(file, after=first)
    go.touch()
    assert (await call)["found"] is False


async def test_a_pool_that_stops_condemns_nobody(bench: Bench) -> None:
    file = bench.folder / "started"
    call = asyncio.create_task(bench.ask("sleep", started=str(file)))
    await started(file)
    await bench.pool.stop()
    with pytest.raises(Unavailable):
        await call


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("left", [-1.0, 0.5])
async def test_a_repeated_parse_without_its_whole_time_condemns_nobody(tmp_path: Path, left: float) -> None:
    clock = Clock()
    async with running(tmp_path, clock=clock) as bench:
        file = tmp_path / "started"
        call = asyncio.create_task(bench.ask("sleep", started=str(file), seconds=60, wait=60))
        first = await started(file)
        clock.now += 120 - left
        os.kill(first, signal.SIGKILL)
        with pytest.raises(Unavailable):
            await call


async def test_a_repeated_parse_that_has_its_whole_time_may_take_too_long(bench: Bench) -> None:
    file = bench.folder / "started"
    call = asyncio.create_task(bench.ask("sleep", started=str(file), seconds=3))
    os.kill(await started(file), signal.SIGKILL)
    with pytest.raises(TookTooLong):
        await call
