"""Fixtures that run the `waybill` command: in this process, which is fast, in one of its own, or as the executable.

`tests/cli` and the commands of each pipeline import them into their conftest.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.engine import Connect
from support.log_lines import print_plainly
from support.zygote import Program
from waybill.db.database import Connection
from waybill_cli.main import app

EXECUTABLE = Path(sys.executable).with_name("waybill")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Waybill = Callable[..., Awaitable[Ran]]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the `.env`, the `.waybill`, the gateway and the terminal of the person who runs the tests out of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAYBILL_GATEWAY_URL", "http://127.0.0.1:9")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def hot(connect: Connect) -> Connection:
    return await connect()


@pytest.fixture
def bare() -> Iterator[Waybill]:
    """Runs the command in this process, with nothing configured."""

    async def run(*arguments: object, typed: str | None = None, **environment: str) -> Ran:
        # It runs in a thread, because the command runs an event loop of its own.
        result = await asyncio.to_thread(
            CliRunner().invoke,
            app,
            [str(each) for each in arguments],
            input=typed,
            env=environment,
            prog_name="waybill",
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    yield run
    print_plainly()
    logging.captureWarnings(False)
    for handler in [each for each in logging.getLogger().handlers if getattr(each, "from_waybill", False)]:
        logging.getLogger().removeHandler(handler)


@pytest.fixture
def waybill(bare: Waybill, database_url: str) -> Waybill:
    """Runs the command in this process, against the test's database."""

    async def run(*arguments: object, **rest: str) -> Ran:
        return await bare(*arguments, **{"WAYBILL_DATABASE_URL": database_url, **rest})

    return run


@pytest.fixture
def process(tmp_path: Path) -> Waybill:
    """Runs the command in a process of its own. The caller sets `WAYBILL_DATABASE_URL` if it needs it."""

    async def run(*arguments: object, **environment: str) -> Ran:
        words = [str(each) for each in arguments]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            program = Program(
                "support.waybill_command",
                *words,
                env={**os.environ, **environment},
                output=out,
                errors=err,
                cwd=tmp_path,
            )
            code = await asyncio.to_thread(program.wait)
            out.seek(0)
            err.seek(0)
            return Ran(code, out.read().decode(), err.read().decode())

    return run


@pytest.fixture
def executable(tmp_path: Path) -> Waybill:
    """Runs the `waybill` that is installed, which takes a second of processor time. The caller sets what it needs."""

    async def run(*arguments: object, **environment: str) -> Ran:
        process = await asyncio.create_subprocess_exec(
            EXECUTABLE,
            *(str(each) for each in arguments),
            env={**os.environ, **environment},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())

    return run


def on_a_terminal(database_url: str, folder: Path, *arguments: str, columns: int = 200, **environment: str) -> str:
    """The executable's output on a pseudo-terminal, as a person would see it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [EXECUTABLE, *arguments],
        env={
            **os.environ,
            "TERM": "xterm",
            "COLUMNS": str(columns),
            "WAYBILL_DATABASE_URL": database_url,
            **environment,
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # Linux reports the end of the output this way
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    assert process.wait() == 0
    return seen.decode().replace("\r\n", "\n")


def assert_harmless(seen: str) -> None:
    assert not [mark for mark in seen if not mark.isprintable() and mark != "\n"]
    assert not [line for line in seen.splitlines() if line.startswith("fake")]
