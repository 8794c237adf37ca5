"""`waybill up` runs everything, says when it is ready, and leaves nothing behind, however it ends."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import psutil
import pytest

from local.conftest import StartUp
from local.processes import NOBODY, UP, Stranger, Up, processes_of
from support.child_processes import is_alive
from support.patience import wait_until
from waybill.console.local_address import published_url
from waybill.http.proofs import ask
from waybill_cli.local.orphans import MARK

READY = "Waybill is ready: http://127.0.0.1:"


def is_serving(port: int) -> bool:
    return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=60, trust_env=False).status_code == 200


def is_back(port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return is_serving(port)
    return False


def service(up: Up, module: str) -> psutil.Process:
    return next(each for each in processes_of(up.home) if module in each.cmdline())


async def test_a_whole_life_from_the_first_start_to_the_last_stop(
    start_up: StartUp, home: Path, free_port: int, gateway_port: int
) -> None:
    """One life in two starts, because each start takes ten seconds: every step checks one promise."""
    up = start_up()
    assert up.wait_for(READY).startswith("waybill | ")
    _serves_when_it_says_so(home, free_port, gateway_port)
    _first_admin_key_works(up, free_port)
    _starting_twice_is_a_clear_error(start_up, up, free_port)
    _a_service_that_dies_is_started_again(up, free_port)
    await execute(published_url(home), "CREATE TABLE memory AS SELECT 'kept' AS word")
    for _ in range(2):
        _a_postgres_that_dies_is_started_again(up, free_port)
    assert stat.S_IMODE((home / "database-url").stat().st_mode) == 0o600
    secret = _the_gateway_has_a_secret_that_only_its_owner_can_read(home, gateway_port)

    before = {each.pid for each in processes_of(home)}
    up.process.kill()
    up.process.wait()
    up = start_up()  # at once, while the last of it may still be dying
    up.wait_for(READY)
    assert is_serving(free_port)
    assert not [pid for pid in before if is_alive(pid)]
    assert await execute(published_url(home), "SELECT word FROM memory") == "kept"
    assert (home / "gateway.secret").read_text() == secret, "it is made once"
    assert not [line for line in up.lines if "wb_" in line], "the admin key is shown once"
    _ctrl_c_is_heard_while_postgres_recovers(up)
    assert not processes_of(home)
    assert published_url(home) is None
    assert "\x1b[" not in up.text, "colours are for terminals"


def _serves_when_it_says_so(home: Path, free_port: int, gateway_port: int) -> None:
    assert is_serving(free_port)
    assert is_serving(gateway_port)
    running = {part for each in processes_of(home) for part in each.cmdline()}
    assert {"waybill_api", "waybill_worker", "waybill_janitor", "waybill_gateway", "waybill_gateway.sandbox"} <= running


def _first_admin_key_works(up: Up, free_port: int) -> None:
    (line,) = [line for line in up.lines if "admin key" in line]
    key = line.rpartition(" ")[2]
    answer = httpx.get(
        f"http://127.0.0.1:{free_port}/api/session", headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    assert answer.json() == {"signed_in": True, "tenant": "admin", "permissions": ["admin"]}


def _starting_twice_is_a_clear_error(start_up: StartUp, up: Up, free_port: int) -> None:
    second = start_up()
    assert second.wait() == 1
    assert f"already runs with {up.home} (process {up.process.pid})" in second.text
    assert is_serving(free_port), "the first one is left alone"


def _a_service_that_dies_is_started_again(up: Up, free_port: int) -> None:
    service(up, "waybill_api").kill()
    up.wait_for("api was ended by SIGKILL; starting it again in 0.5 s")

    wait_until(lambda: is_back(free_port), "the API's return")
    assert len([line for line in up.lines if READY in line]) == 1, "one ready line, not one per restart"


def servers(home: Path) -> list[psutil.Process]:
    return [each for each in processes_of(home) if each.name() == "postgres"]


def _a_postgres_that_dies_is_started_again(up: Up, free_port: int) -> None:
    url, seen = published_url(up.home), len(up.lines)
    for each in servers(up.home):
        each.kill()
    up.wait_for("Postgres stopped by itself; starting it again in", after=seen)
    up.wait_for("Postgres runs again", after=seen)

    wait_until(lambda: is_back(free_port), "the database's return, at the same address")
    assert published_url(up.home) == url


def _ctrl_c_is_heard_while_postgres_recovers(up: Up) -> None:
    """Its recovery waits for an archive that never answers, so that its start would take for ever."""
    data = Path(next(iter(servers(up.home))).cwd())
    (data / "recovery.signal").touch()
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write("restore_command = 'sleep 600'\n")
    os.chown(data / "recovery.signal", data.stat().st_uid, data.stat().st_gid)
    for each in servers(up.home):
        each.kill()
    up.wait_for("Postgres stopped by itself")
    wait_until(lambda: len(servers(up.home)) > 1, "a server that recovers")
    asked = time.monotonic()
    assert up.stop(signal.SIGINT) == 0, up.text
    assert time.monotonic() - asked < 40, "its start is given 120 s, and nobody waits for that"


@pytest.mark.heavy
def _the_gateway_has_a_secret_that_only_its_owner_can_read(home: Path, gateway_port: int) -> str:
    file = home / "gateway.secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = file.read_text()
    url = f"http://127.0.0.1:{gateway_port}/mappings"
    assert httpx.get(url, timeout=60, trust_env=False).status_code == 401
    _, proof = ask(secret.strip().encode(), "GET", "/mappings")
    assert httpx.get(url, headers=proof, timeout=60, trust_env=False).status_code == 200
    return secret


@pytest.mark.heavy
def test_sigterm_leaves_no_process(start_up: StartUp, home: Path) -> None:
    up = start_up()
    up.wait_for(READY)
    assert up.stop(signal.SIGTERM) == 0, up.text
    assert not processes_of(home)
    assert published_url(home) is None


@pytest.mark.heavy
def test_services_are_told_apart_by_their_prefix(start_up: StartUp) -> None:
    up = start_up()
    up.wait_for(READY)
    up.stop(signal.SIGTERM)
    assert {line.split("|")[0].strip() for line in up.lines} == {"waybill", "worker", "gateway", "janitor", "api"}


async def execute(url: str | None, statement: str) -> object:
    assert url is not None
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


@pytest.mark.heavy
def test_after_kill_9_of_make_the_next_start_just_works(start_up: StartUp, home: Path) -> None:
    # Stands for `make up`: a parent that is killed and so cannot stop what it started.
    pretender = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    make = start_up(command=(sys.executable, "-c", pretender, *UP), MAKELEVEL="1")
    make.wait_for(READY)
    make.process.kill()
    make.process.wait()
    up = start_up()
    up.wait_for(READY)
    assert up.stop(signal.SIGTERM) == 0
    assert not processes_of(home)


@pytest.mark.heavy
def test_what_a_killed_predecessor_left_running_is_ended(start_up: StartUp, home: Path) -> None:
    # As a job's own process would be: in another session, with a parent that is gone.
    orphan = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        env={**os.environ, MARK: str(home)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with orphan:
        assert orphan.stdout is not None
        orphan.stdout.readline()
        up = start_up()
        assert orphan.wait(timeout=60) == -signal.SIGKILL
    up.wait_for(READY)
    up.stop(signal.SIGTERM)


@pytest.mark.parametrize("service", ["API", "GATEWAY"])
def test_a_taken_port_is_a_clear_error_before_anything_starts(
    start_up: StartUp, home: Path, free_port: int, gateway_port: int, service: str
) -> None:
    port = free_port if service == "API" else gateway_port
    with socket.create_server(("127.0.0.1", port)):
        up = start_up()
        assert up.wait() == 1
    assert f"Port {port} on 127.0.0.1 is taken" in up.text
    assert f"WAYBILL_{service}_PORT=" in up.text
    assert not (home / "postgres").exists()


@pytest.mark.parametrize("service", ["gateway", pytest.param("api", marks=pytest.mark.heavy)])
def test_a_port_that_is_taken_while_it_starts_ends_everything(
    start_up: StartUp, home: Path, free_port: int, gateway_port: int, service: str
) -> None:
    port = free_port if service == "api" else gateway_port
    up = start_up()
    up.wait_for("Postgres runs on")  # the ports have been looked at, and nobody listens yet
    with a_stranger_who_says_yes(port):
        assert up.wait() == 1
    assert f"{service} cannot listen. Port {port} on 127.0.0.1 is taken" in up.text
    assert f"WAYBILL_{service.upper()}_PORT=" in up.text
    assert READY not in up.text, "a stranger's answers are not our gateway's"
    assert not processes_of(home)


@contextlib.contextmanager
def a_stranger_who_says_yes(port: int) -> Iterator[None]:
    """A program of somebody else's that answers every request."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), YesMan) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


class YesMan(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


def test_two_services_with_one_port_are_a_clear_error(start_up: StartUp, home: Path, free_port: int) -> None:
    up = start_up(WAYBILL_GATEWAY_PORT=str(free_port))
    assert up.wait() == 1
    assert f"Port {free_port} is set for both api and gateway" in up.text
    assert not (home / "postgres").exists()


def test_a_bad_setting_of_any_service_is_a_clear_error_before_anything_starts(start_up: StartUp, home: Path) -> None:
    wrong = {
        "WAYBILL_API_BODY_TIMEOUT": "never",  # the API's
        "WAYBILL_LEASE_TTL": "soon",  # the worker's
        "WAYBILL_GATEWAY_MEMORY_MB": "1",  # the gateway's
        "WAYBILL_ORPHAN_GRACE": "long",  # the janitor's
        "WAYBILL_PDF_TTL_DAYS": "-1",  # a pipeline's
        "WAYBILL_LOG_LEVEL": "loud",  # everybody's
    }
    up = start_up(**wrong)
    assert up.wait() == 2
    assert sorted(line.partition(":")[0] for line in up.lines) == sorted(wrong), "every problem, and each one once"
    assert not home.exists()


@pytest.mark.heavy
def test_no_parser_outlives_a_gateway_that_was_killed(start_up: StartUp) -> None:
    up = start_up()
    up.wait_for(READY)
    parsers = [each for each in processes_of(up.home) if "waybill_gateway.sandbox" in each.cmdline()]
    service(up, "waybill_gateway").kill()
    up.wait_for("gateway was ended by SIGKILL; starting it again in 0.5 s")
    wait_until(lambda: not [each for each in parsers if is_alive(each.pid)], "the end of its parsers")
    assert up.stop(signal.SIGTERM) == 0


@pytest.mark.heavy
def test_a_configuration_that_a_service_rejects_stops_everything(start_up: StartUp, home: Path) -> None:
    up = start_up(WAYBILL_WORKER_HANDLERS="no_such_module")
    assert up.wait() == 2
    assert "worker rejects its configuration" in up.text
    assert not processes_of(home)


@pytest.mark.heavy
def test_a_second_ctrl_c_hurries(start_up: StartUp, home: Path) -> None:
    up = start_up()
    up.wait_for(READY)
    service(up, "waybill_worker").suspend()  # it will not react to SIGTERM
    up.process.send_signal(signal.SIGINT)
    up.wait_for("Stopping (SIGINT)")
    assert up.stop(signal.SIGINT) == 0
    assert "Killing what still runs" in up.text
    assert not processes_of(home)


@pytest.mark.heavy
def test_ctrl_c_while_it_starts_leaves_nothing(start_up: StartUp, home: Path) -> None:
    up = start_up()
    wait_until(lambda: processes_of(home), "the first process")
    assert up.stop(signal.SIGINT) == 0, up.text
    assert not processes_of(home)
    up = start_up()
    up.wait_for(READY)
    assert up.stop(signal.SIGTERM) == 0


@pytest.mark.heavy
def test_a_database_of_your_own_is_used_instead(
    start_up: StartUp, home: Path, free_port: int, empty_database_url: str
) -> None:
    up = start_up(WAYBILL_DATABASE_URL=empty_database_url)
    up.wait_for(READY)
    assert is_serving(free_port), "it has been migrated"
    assert not (home / "postgres").exists()
    assert not [each for each in processes_of(home) if each.name() == "postgres"]
    assert up.stop(signal.SIGTERM) == 0
    password = empty_database_url.split("@")[0].rpartition(":")[2]
    assert password not in up.text


def test_a_database_that_does_not_answer_is_a_clear_error(start_up: StartUp, free_port: int) -> None:
    up = start_up(
        WAYBILL_DATABASE_URL=f"postgresql://me:secret@127.0.0.1:{free_port}/x",
        WAYBILL_DATABASE_CONNECT_TIMEOUT="1",
    )
    assert up.wait() != 0
    assert "WAYBILL_DATABASE_URL" in up.text
    assert "Traceback" not in up.text
    assert "secret" not in up.text


@pytest.mark.heavy
def test_an_ordinary_user_can_run_it(stranger: Stranger, free_port: int, gateway_port: int) -> None:
    home = stranger.folder / "home"
    packages = os.pathsep.join(each for each in sys.path if each)
    command = [stranger.python, *UP[1:]]
    environment = {
        "WAYBILL_API_PORT": str(free_port),
        "WAYBILL_GATEWAY_PORT": str(gateway_port),
        "PYTHONPATH": packages,
        "HOME": str(stranger.folder),
    }
    if not stranger.can_import("waybill_cli.main", packages):
        pytest.skip("the user `nobody` cannot enter the folder of this clone")
    up = Up(home, environment, command, user=NOBODY)
    try:
        up.wait_for(READY)
        assert is_serving(free_port)
        assert {each.uids().real for each in processes_of(home)} == {NOBODY}
        assert (home / "postgres" / "data").exists()
        assert up.stop(signal.SIGTERM) == 0
        assert not processes_of(home)
    finally:
        up.close()
