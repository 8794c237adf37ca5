"""The embedded Postgres keeps its data and leaves nothing else behind, whoever runs it and however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from local.processes import NOBODY, Stranger, processes_of
from support.child_processes import is_alive
from support.patience import wait_until
from waybill_cli.local.postgres import EmbeddedPostgres, PostgresError, PostgresInUseError, debian_binaries
from waybill_cli.local.postgres.binaries import bundled_binaries, within_reach
from waybill_cli.local.postgres.places import data_place, left_data

FAST = {"fsync": "off"}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand the server to another user")


def server_at(home: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(home, settings=FAST)


async def ask(url: str, *statements: str) -> object:
    """The answer to the last statement."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return await connection.fetchval(statements[-1])
    finally:
        await connection.close()


REMEMBER = ("CREATE TABLE memory (word text)", "INSERT INTO memory VALUES ('kept') RETURNING word")
RECALL = "SELECT word FROM memory"


async def test_data_survives_a_stop_and_a_new_process(home: Path) -> None:
    with server_at(home) as server:
        await ask(server.url, *REMEMBER)
        first = server.pid
    assert not processes_of(home)
    with server_at(home) as server:
        assert server.pid != first
        assert await ask(server.url, RECALL) == "kept"


async def test_a_restart_keeps_the_address(home: Path) -> None:
    with server_at(home) as server:
        address = server.url
        await ask(address, *REMEMBER)
        server.stop("immediate")
        assert not processes_of(home)
        server.start()
        assert server.url == address
        assert await ask(address, RECALL) == "kept"


async def test_it_starts_again_after_its_processes_were_killed(home: Path) -> None:
    server = server_at(home)
    with server:
        await ask(server.url, *REMEMBER)
        for process in processes_of(home):
            process.kill()
        wait_until(lambda: not server.running, "the end of the server")
        server.start()
        assert await ask(server.url, RECALL) == "kept"


async def test_it_clears_away_backends_whose_postmaster_was_killed(home: Path) -> None:
    with server_at(home) as server:
        await ask(server.url, *REMEMBER)
        # A busy backend does not notice for a while, and Postgres refuses to start beside it.
        connection = await asyncpg.connect(server.url)
        busy: int = await connection.fetchval("SELECT pg_backend_pid()")
        os.kill(busy, signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not server.running, "the end of the postmaster")
        connection.terminate()
        server.start()
        assert not is_alive(busy)
        assert await ask(server.url, RECALL) == "kept"


async def test_a_stale_pid_file_that_names_a_living_stranger_is_no_obstacle(home: Path) -> None:
    with server_at(home) as server:
        data = Path(psutil.Process(server.pid).cwd())
        await ask(server.url, *REMEMBER)
        stale = (data / "postmaster.pid").read_text().splitlines()
    (data / "postmaster.pid").write_text("\n".join([str(os.getppid()), *stale[1:]]) + "\n")
    with server_at(home) as server:
        assert await ask(server.url, RECALL) == "kept"
    assert is_alive(os.getppid())


START_AND_WAIT = """
import sys, threading
from pathlib import Path
from waybill_cli.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off"})
if sys.argv[2] == "thread":
    thread = threading.Thread(target=server.start); thread.start(); thread.join()
else:
    server.start()
print(server.pid, flush=True)
sys.stdin.read()
server.stop()
"""


def start_elsewhere(home: Path, thread: str = "main") -> tuple[subprocess.Popen[str], int]:
    """A server started by another process, and its pid."""
    owner = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, str(home), thread],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline())


def kill(owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.communicate()


def test_the_server_ends_with_the_process_that_started_it(home: Path) -> None:
    owner, _ = start_elsewhere(home)
    kill(owner)
    wait_until(lambda: not processes_of(home), "the end of the server")


async def test_a_server_that_outlived_its_owner_is_replaced(home: Path) -> None:
    # Started from a thread, the kernel does not end it with its owner; as on systems that cannot.
    owner, orphan = start_elsewhere(home, "thread")
    kill(owner)
    assert is_alive(orphan)
    with server_at(home) as server:
        assert not is_alive(orphan)
        assert await ask(server.url, "SELECT 'here'") == "here"
    assert not processes_of(home)


def test_two_at_once_is_a_clear_error(home: Path) -> None:
    owner, pid = start_elsewhere(home)
    with pytest.raises(PostgresInUseError, match=f"started by process {owner.pid}") as caught:
        server_at(home).start()
    assert "WAYBILL_HOME" in str(caught.value)
    assert is_alive(pid), "the first one is left alone"
    owner.communicate("")
    assert not processes_of(home)


async def test_only_the_password_opens_it(home: Path) -> None:
    with server_at(home) as server:
        for password in ("", ":wrong"):
            with pytest.raises(asyncpg.InvalidPasswordError):
                await ask(f"postgresql://waybill{password}@127.0.0.1:{server.port}/postgres", "SELECT 1")
        assert await ask(server.url, "SHOW unix_socket_directories") == ""
        listening = psutil.Process(server.pid).net_connections("tcp")
        assert {each.laddr.ip for each in listening} == {"127.0.0.1"}
        assert stat.S_IMODE((home / "postgres" / "password").stat().st_mode) == 0o600


@pytest.mark.heavy
async def test_a_very_long_home_path_works(home: Path) -> None:
    deep = home / ("long" * 40)
    try:
        with server_at(deep) as server:
            assert await ask(server.url, "SELECT 'here'") == "here"
    finally:
        EmbeddedPostgres(deep).destroy()


async def test_create_database_once(home: Path) -> None:
    with server_at(home) as server:
        url = server.create_database("way bill")
        assert server.create_database("way bill") == url
        assert await ask(url.replace(" ", "%20"), "SELECT current_database()") == "way bill"


def test_data_of_another_version_is_refused(home: Path) -> None:
    with EmbeddedPostgres(home, version=16, settings=FAST):
        pass
    with pytest.raises(PostgresError, match=r"written by Postgres 16, and this is Postgres 18") as caught:
        EmbeddedPostgres(home, version=18).start()
    assert "pg_dump" in str(caught.value)


def test_a_bad_setting_shows_what_postgres_says(home: Path) -> None:
    with pytest.raises(PostgresError, match="no_such_setting"):
        EmbeddedPostgres(home, settings={"no_such_setting": "1"}).start()
    assert not processes_of(home)


def test_a_start_that_was_interrupted_half_way_leaves_no_half_data(home: Path) -> None:
    with server_at(home) as server:
        data = Path(psutil.Process(server.pid).cwd())
    data.rename(data.with_name("data.new-half"))
    with server_at(home):
        assert not data.with_name("data.new-half").exists()


async def test_a_temporary_server_is_gone_afterwards() -> None:
    with EmbeddedPostgres.temporary() as server:
        assert await ask(server.url, "SHOW fsync") == "off"
        data = Path(psutil.Process(server.pid).cwd())
        segments = shared_memory_of(server.pid)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not server.running, "the end of the server")
    assert not data.exists()
    assert not server.home.exists()
    assert not segments & shared_memory()


def shared_memory() -> set[str]:
    table = Path("/proc/sysvipc/shm")
    return {line.split()[1] for line in table.read_text().splitlines()[1:]} if table.exists() else set()


def shared_memory_of(pid: int) -> set[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:] if sys.platform == "linux" else []
    return {line.split()[1] for line in lines if line.split()[4] == str(pid)}


async def test_debians_postgres_runs_the_same_way() -> None:
    binaries = debian_binaries()
    if binaries is None:
        pytest.skip("Debian's postgresql-15 is not installed")
    with EmbeddedPostgres.temporary(binaries=binaries) as server:
        assert str(await ask(server.url, "SHOW server_version")).startswith("15.")


@needs_root
async def test_root_hands_the_server_to_a_user_nobody_else_is(home: Path) -> None:
    with server_at(home) as server:
        await ask(server.url, *REMEMBER)
        postmaster = psutil.Process(server.pid)
        data = Path(postmaster.cwd())
        uids, gids = postmaster.uids(), postmaster.gids()
    assert len({*uids, *gids}) == 1
    assert uids.real not in (0, NOBODY)
    assert data.stat().st_uid == uids.real
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    # Its parent lets the server's group pass and nobody else, and only root may change it.
    assert (data.parent.stat().st_uid, data.parent.stat().st_gid) == (0, gids.real)
    assert stat.S_IMODE(data.parent.stat().st_mode) == 0o710
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700, "the closed folder stays closed"
    with server_at(home) as server:
        assert psutil.Process(server.pid).uids() == uids
        assert await ask(server.url, RECALL) == "kept"


@needs_root
async def test_root_brings_binaries_out_of_a_closed_folder(home: Path) -> None:
    original = bundled_binaries()
    closed = home.parent / "site-packages"
    package = original.parent.parent
    for each in (package / original.parent.name, package.with_name(f"{package.name}.libs")):
        subprocess.run(
            ["cp", "-r", "--parents", each.relative_to(package.parent), closed_folder(closed)],
            cwd=package.parent,
            check=True,
        )
    binaries = closed / original.relative_to(package.parent)
    with (binaries / "postgres").open("ab") as program_file:
        program_file.write(b"\0")  # unlike any other, so that the copy is this test's own
    with EmbeddedPostgres(home, binaries=binaries, settings=FAST) as server:
        assert await ask(server.url, "SELECT 'here'") == "here"
        program = Path(psutil.Process(server.pid).exe())
    assert program == within_reach(binaries) / "postgres"
    for folder in (program, *program.parents):
        assert folder.stat().st_uid == 0
        assert not folder.stat().st_mode & 0o022
    shutil.rmtree(program.parents[3])


def closed_folder(path: Path) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@needs_root
def test_data_whose_home_was_removed_is_found(home: Path) -> None:
    home.mkdir()
    (home / "postgres").mkdir()
    place = data_place(home)
    (place / "file").write_bytes(b"12345")
    try:
        assert place not in [left.place for left in left_data()]
        shutil.rmtree(home)
        (left,) = [left for left in left_data() if left.place == place]
        assert left.home == str(home)
        assert left.bytes >= 5
    finally:
        shutil.rmtree(place)


AS_STRANGER = """
import os, sys
from pathlib import Path
from waybill_cli.local.postgres import EmbeddedPostgres
home = Path(sys.argv[1]) / "home"
for _ in range(2):
    with EmbeddedPostgres(home, binaries=Path(sys.argv[2]), settings={"fsync": "off"}) as server:
        print(server.create_database("waybill"))
        assert (home / "postgres" / "data" / "postmaster.pid").exists()
        assert os.stat(f"/proc/{server.pid}").st_uid == os.getuid() != 0
"""


def test_an_ordinary_user_keeps_everything_in_the_home_folder(stranger: Stranger) -> None:
    binaries = str(within_reach(bundled_binaries()))
    run = stranger.run("-c", AS_STRANGER, str(stranger.folder), binaries, path=stranger.path)
    assert run.returncode == 0, run.stderr
    assert not processes_of(stranger.folder / "home")
