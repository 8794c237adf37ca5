"""Homes for servers and for `waybill up`; what they leave behind is cleared away after each test."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from local.processes import NOBODY, UP, Stranger, Up
from support import child_processes
from waybill_cli.local.postgres import EmbeddedPostgres


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home folder in a folder that only its owner may enter; its data, wherever it lies, goes afterwards."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    yield closed / "home"
    EmbeddedPostgres(closed / "home").destroy()


@pytest.fixture
def free_port() -> int:
    """For the API."""
    return child_processes.free_port()


@pytest.fixture
def gateway_port() -> int:
    return child_processes.free_port()


StartUp = Callable[..., Up]


@pytest.fixture
def start_up(home: Path, free_port: int, gateway_port: int) -> Iterator[StartUp]:
    """Starts `waybill up` with the test's home and free ports; whatever is left of it is killed afterwards."""
    started: list[Up] = []
    ports = {"WAYBILL_API_PORT": str(free_port), "WAYBILL_GATEWAY_PORT": str(gateway_port)}

    def start(command: Sequence[str] = UP, **environment: str) -> Up:
        started.append(Up(home, {**ports, **environment}, command))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests already run as an ordinary one")
    python = next((each for each in _interpreters() if _runs_as_nobody(each)), None)
    if python is None:
        pytest.skip("no Python that the user `nobody` could run")
    with tempfile.TemporaryDirectory(prefix="waybill-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        import waybill.files.private
        import waybill_cli.local

        shutil.copytree(Path(waybill_cli.local.__file__).parent, root / "src" / "waybill_cli" / "local")
        # The one module outside that the server needs, without its package, which needs what a stranger has not got.
        (root / "src" / "waybill" / "files").mkdir(parents=True)
        shutil.copy(waybill.files.private.__file__, root / "src" / "waybill" / "files" / "private.py")
        own = root / "own"
        own.mkdir(mode=0o700)
        os.chown(own, NOBODY, NOBODY)
        yield Stranger(python, own)


def _interpreters() -> list[str]:
    version = sysconfig.get_python_version()
    return [sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"]


def _runs_as_nobody(python: str) -> bool:
    with contextlib.suppress(OSError):
        run = subprocess.run(
            [python, "-I", "-c", "import ctypes, fcntl, sys"],
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            cwd="/",
            capture_output=True,
        )
        return run.returncode == 0
    return False
