"""Whatever a document does to its parser, the pool tells what it was, stays whole, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from support.child_processes import is_alive
from support.parser_pool import MB, Bench, running
from support.parser_pool import started as started_parse
from support.patience import eventually
from waybill.telemetry.metrics import GATEWAY_PARSER_DEATHS
from waybill_gateway.pool import Blueprint, Broken, Crashed, PoolError, TookTooLong, TooMuchMemory, Unavailable
from waybill_gateway.pool.parser import Parser
from waybill_gateway.pool.pool import log_confinement
from waybill_gateway.sandbox.limits import ProcessLimits

TESTS = Path(__file__).parents[1]
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines files and network")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def deaths() -> dict[str, float]:
    return {labels[0]: one.value for labels, one in GATEWAY_PARSER_DEATHS.series()}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with running(tmp_path) as bench:
        yield bench


async def test_a_document_is_parsed_in_another_process_and_its_answer_lies_in_a_file(bench: Bench) -> None:
    note = await bench.ask("echo", say="hello")
    assert note["said"] == "hello"
    assert note["pid"] in bench.pool.pids
    assert note["pid"] != os.getpid()
    assert bench.result.read_text() == "hello"
    assert (await bench.ask("echo"))["pid"] == note["pid"], "a healthy process is used again"


@pytest.mark.parametrize(
    ("rude", "verdict"),
    [
        ("segfault", Crashed),
        ("abort", Crashed),
        ("leave", Crashed),
        ("vanish", Crashed),
        ("forge", Crashed),
        ("spin", TookTooLong),
        ("sleep", TookTooLong),
        ("ignore_signals", TookTooLong),
        ("hoard", TooMuchMemory),
        ("stumble", Broken),
        ("recurse", Broken),
        ("scribble", Broken),
        ("shout", Crashed),
    ],
)
async def test_a_rude_document_gets_its_verdict_and_the_next_one_its_answer(
    bench: Bench, rude: str, verdict: type[PoolError]
) -> None:
    before = deaths()
    with pytest.raises(verdict):
        await bench.ask(rude, seconds=1 if verdict is TookTooLong else 20)
    cause = {Crashed: "crashed", TookTooLong: "took_too_long", TooMuchMemory: "too_much_memory"}.get(verdict)
    expected = 0 if cause is None else 2 if verdict is Crashed else 1  # a crash must repeat to be the document's fault
    assert Counter(deaths()) - Counter(before) == Counter({cause: expected} if cause else {})
    assert (await bench.ask("echo", say="still here"))["said"] == "still here"


async def test_the_time_on_the_processor_is_counted_for_each_document(bench: Bench) -> None:
    with pytest.raises(TookTooLong):
        await bench.ask("spin", seconds=1)
    for _ in range(3):
        await bench.ask("echo", seconds=1)


async def test_what_a_parser_prints_disturbs_nobody(bench: Bench) -> None:
    pid = (await bench.ask("chatter"))["pid"]
    assert (await bench.ask("echo"))["pid"] == pid


async def test_a_process_is_replaced_after_its_documents(tmp_path: Path) -> None:
    async with running(tmp_path, documents=3) as bench:
        pids = [(await bench.ask("echo"))["pid"] for _ in range(7)]
    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert pids[3] == pids[5] != pids[6]


async def test_a_process_that_keeps_too_much_memory_is_replaced(tmp_path: Path) -> None:
    async with running(tmp_path, resident=60 * MB) as bench:
        first = (await bench.ask("swell", bytes=1))["pid"]
        assert (await bench.ask("swell", bytes=80 * MB))["pid"] == first
        assert (await bench.ask("echo"))["pid"] != first


async def test_what_hangs_together_in_circles_goes_with_its_document(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        first = await bench.ask("tangle", megabytes=50)
        resident = psutil.Process(first["pid"]).memory_info().rss
        for _ in range(20):  # together more than twice what it may have
            assert await bench.ask("tangle", megabytes=50) == first, "the same process"
        assert psutil.Process(first["pid"]).memory_info().rss < resident + 20 * MB


async def test_circles_within_one_document_stop_at_the_memory_limit(bench: Bench) -> None:
    with pytest.raises(TooMuchMemory):
        await bench.ask("tangle", megabytes=2000)


async def test_one_process_that_dies_does_not_disturb_its_neighbour(tmp_path: Path) -> None:
    async with running(tmp_path, processes=2) as bench:
        await bench.wait_for_processes(2)
        started = tmp_path / "started"
        go = tmp_path / "go"
        long = asyncio.create_task(bench.ask("sleep", started=str(started), until=str(go)))
        await eventually(lambda: _exists(started))
        for _ in range(3):
            with pytest.raises(Crashed):
                await bench.ask("segfault")
        assert not long.done()
        go.touch()
        assert (await long)["pid"]


async def _exists(path: Path) -> bool:
    return path.exists()


async def test_two_documents_are_parsed_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, processes=2) as bench:
        both = [
            asyncio.create_task(bench.ask("sleep", started=str(tmp_path / name), seconds=60)) for name in ("a", "b")
        ]
        await eventually(lambda: _exists(tmp_path / "a"))
        await eventually(lambda: _exists(tmp_path / "b"))
        for task in both:
            task.cancel()
        await asyncio.wait(both)


async def test_a_cancelled_call_kills_its_parse_and_what_that_started(bench: Bench) -> None:
    started = bench.folder / "started"
    call = asyncio.create_task(bench.ask("fork", started=str(started), seconds=60))
    await eventually(lambda: _exists(started))
    grandchild = int(started.read_text())
    parser = next(iter(bench.pool.pids))
    call.cancel()
    await asyncio.wait([call])

    async def gone() -> bool:
        return not is_alive(parser) and not is_alive(grandchild)

    await eventually(gone, what="the end of both processes")
    assert (await bench.ask("echo"))["pid"] != parser


async def test_a_cancelled_call_kills_a_parse_that_had_closed_its_channel(bench: Bench) -> None:
    started = bench.folder / "started"
    call = asyncio.create_task(bench.ask("hang_up", started=str(started)))
    await eventually(lambda: _exists(started))
    call.cancel()
    await asyncio.wait([call])
    assert (await bench.ask("echo", say="still here"))["said"] == "still here"


async def test_a_process_killed_in_its_sleep_is_replaced_before_anybody_notices(bench: Bench) -> None:
    first = (await bench.ask("echo"))["pid"]
    os.kill(first, signal.SIGKILL)
    assert (await bench.ask("echo"))["pid"] != first


async def test_a_call_waits_for_a_free_process_only_so_long(bench: Bench) -> None:
    started = bench.folder / "started"
    long = asyncio.create_task(bench.ask("sleep", started=str(started)))
    await eventually(lambda: _exists(started))
    with pytest.raises(Unavailable):
        await bench.ask("echo", wait=0.1)
    long.cancel()
    await asyncio.wait([long])


async def test_processes_that_cannot_start_make_the_pool_unready(tmp_path: Path) -> None:
    async with running(tmp_path, function="no_such_function") as bench:

        async def refused() -> bool:
            try:
                await bench.ask("echo", wait=0.5)
            except Unavailable as error:
                return "can be started" in str(error)
            return False

        await eventually(refused)
        assert not bench.pool.ready


async def test_a_start_that_is_cancelled_leaves_no_process_and_no_socket(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"  # a parser that has closed its channel and still runs
    function = f"support.deaf_parser:{deaf}"
    start = asyncio.create_task(Parser.start(Blueprint(function, ProcessLimits(memory=400 * MB, result=2 * MB))))
    pid = await started_parse(deaf)
    await asyncio.sleep(0.1)  # so that the cancellation comes while we wait for the end of the process
    sockets = len(psutil.Process().net_connections("unix"))

    start.cancel()
    await asyncio.wait([start])

    async def nothing_is_left() -> bool:
        return not is_alive(pid) and len(psutil.Process().net_connections("unix")) == sockets - 1

    await eventually(nothing_is_left)


@needs_linux
@pytest.mark.parametrize("do", ["spawn", "connect", "write", "read"])
async def test_a_parser_reaches_neither_programs_nor_network_nor_other_files(
    bench: Bench, do: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(Broken) as caught:
        await bench.ask(do, path=str(elsewhere), port=server.getsockname()[1])
    assert "PermissionError" in caught.value.traceback
    assert elsewhere.read_text() == "secret"


async def test_a_parser_does_not_know_our_secrets(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://me:hunter2@db/x")
    with pytest.raises(Crashed):
        await bench.ask("vanish")
    assert "hunter2" not in str(await bench.ask("environment"))


@needs_linux
async def test_the_kernel_is_told_to_end_a_parser_first_when_memory_is_short(bench: Bench) -> None:
    pid = (await bench.ask("echo"))["pid"]
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"


OWNER = """
import asyncio, sys
from pathlib import Path
from waybill.telemetry.metrics import GATEWAY_PARSER_DEATHS
from waybill_gateway.pool import Blueprint, Pool
from waybill_gateway.pool.pool import log_confinement
from waybill_gateway.sandbox.limits import ProcessLimits

async def main():
    folder = Path(sys.argv[1])
    blueprint = Blueprint("support.rude_parses:obey", ProcessLimits(memory=2**28, result=2**20), writable=(folder,))
    pool = Pool(blueprint, processes=2, documents=100, resident=2**30)
    pool.start()
    calls = [
        pool.run({"do": "sleep", "started": str(folder / name)}, folder / "result", seconds=600, wait=60)
        for name in "ab"
    ]
    await asyncio.gather(*calls)

asyncio.run(main())
"""


async def test_no_process_outlives_a_service_that_was_killed(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)])
    files = [tmp_path / name for name in "ab"]
    try:
        for file in files:
            await eventually(lambda file=file: _exists(file))  # type: ignore[misc]
    finally:
        owner.kill()
        owner.wait()
    pids = [int(file.read_text()) for file in files]

    async def gone() -> bool:
        return not any(is_alive(pid) for pid in pids)

    await eventually(gone, what="the end of the parsing processes")


@pytest.mark.parametrize("crashes", [10, pytest.param(200, marks=[pytest.mark.heavy, pytest.mark.timeout(600)])])
async def test_crashes_leave_neither_memory_nor_descriptors_behind(tmp_path: Path, crashes: int) -> None:
    ourselves = psutil.Process()
    async with running(tmp_path, processes=2) as bench:

        async def crash(times: int) -> None:
            for _ in range(times):
                with pytest.raises(Crashed):
                    await bench.ask("vanish")

        await crash(5)  # each of them twice
        before, files = ourselves.memory_info().rss, ourselves.num_fds()
        await crash(crashes)
        await bench.wait_for_processes(2)
        assert ourselves.memory_info().rss - before < 10 * MB
        assert ourselves.num_fds() <= files + 6


@pytest.mark.parametrize(
    ("landlock", "platform", "event", "level"),
    [
        (4, "linux", "parsers_confined", "info"),
        (0, "linux", "parsers_not_confined", "warning"),
        (0, "darwin", "parsers_confined", "info"),
    ],
)
def test_it_is_said_whether_the_kernel_confines_the_parsers(
    landlock: int, platform: str, event: str, level: str
) -> None:
    with capture_logs() as lines:
        log_confinement(landlock, platform)
    assert [(line["event"], line["log_level"], line["landlock"]) for line in lines] == [(event, level, landlock)]
